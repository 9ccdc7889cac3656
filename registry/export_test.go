package registry

// A collection that stands still, as the tests of its claims let it, is in the way for ever: they don't wait long.
func init() { anchorAttempts = 3 }
