"""The JSON API: requests, answers, and the OpenAPI document of both."""
