"""The JSON interface: what is asked, what is answered, and the document that says both."""
