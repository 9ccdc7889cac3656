"""What {{.Name}} is for, in one line."""
