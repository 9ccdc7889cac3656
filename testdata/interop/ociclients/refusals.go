package main

// What must stand on the screen when the registry refuses. The texts are parts of our rules' messages.
var (
	badToken     = []string{"the token is not valid"} // the same with Basic, where every request carries the password
	badSignIn    = []string{"the account or its password is wrong"}
	signInFirst  = []string{"authentication required"}
	headOnly     = []string{"401"} // of a client that asks by HEAD first: such an answer has no body to show
	wrongTag     = []string{"refused by the publish gate", `the tag is "9.9.9"`, "publish.version.tag"}
	versionTaken = []string{"refused by the publish gate", "versions never change", "Its bytes differ", "Raise the version"}
	versionStays = []string{"versions are immutable and can't be deleted"}
	notThere     = []string{"there is no repository"}
	overQuota    = []string{"quota exceeded: owner bob may hold 1 bytes", "ask an administrator"}
	blobInUse    = []string{"delete these first"}
	packsOnly    = []string{"holds algorithm packs"}
)

// notYours is the refusal of a push below another's name.
func notYours(repository string) []string { return []string{"account alice", "may not", repository} }
