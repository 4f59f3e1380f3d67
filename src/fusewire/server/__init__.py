"""The dashboard, the JSON interface, the metrics and the HTTP hooks: the extra `fusewire[server]`."""
