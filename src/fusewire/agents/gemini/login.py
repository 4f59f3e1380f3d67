"""Say how Gemini CLI reaches its provider."""

from fusewire.agents.provider import Login

LOGIN = Login(
    "google",
    switches=(("GOOGLE_GENAI_USE_VERTEXAI", "vertex"),),
    address="GOOGLE_GEMINI_BASE_URL",
    host="generativelanguage.googleapis.com",
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
)
