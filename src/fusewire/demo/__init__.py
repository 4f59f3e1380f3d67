"""What `fusewire demo` plays with: an agent without a model, and the project that it works on."""
