package main

// The flags that keep cosign offline: no transparency log, no certificate authority, a key of its own.
var (
	cosignSign   = []string{"-y", "--key", "cosign.key", "--tlog-upload=false", "--use-signing-config=false"}
	cosignVerify = []string{"--key", "cosign.pub", "--insecure-ignore-tlog=true"}
)

// cosignCommand puts a verb together.
func cosignCommand(r *round, verb string, parts ...[]string) []string {
	command := []string{"cosign", verb}
	if r.reg.CAFile == "" {
		command = append(command, "--allow-http-registry")
	}
	for _, p := range parts {
		command = append(command, p...)
	}
	return command
}

// cosignStart signs in, makes a key, and puts an image there with crane.
func cosignStart(r *round) (image string) {
	r.with(r.people.alice).ok("sign in", "cosign", "login", r.host, "-u", "alice", "--password-stdin")
	r.ok("make a key", "cosign", "generate-key-pair")
	r.ok("push an image with crane", "crane", "push", "image", r.repo("img")+":v1")
	return r.repo("img") + "@" + r.tagged("image")
}

func cosignTLS(r *round) {
	image := cosignStart(r)
	r.ok("sign", cosignCommand(r, "sign", cosignSign, []string{image})...)
	r.shows("verify", []string{"were verified"}, cosignCommand(r, "verify", cosignVerify, []string{image})...)
}

func cosign(r *round) {
	r.with("wrong").ok("cosign stores a wrong password", "cosign", "login", r.host, "-u", "alice", "--password-stdin")
	r.ok("make a first key", "cosign", "generate-key-pair", "--output-key-prefix", "first")
	r.refused("sign with it", badSignIn, cosignCommand(r, "copy", []string{r.repo("img") + ":v1", r.repo("img2") + ":v1"})...)
	image := cosignStart(r)
	statement := []string{"--predicate", "predicate.json", "--type", "custom"}
	for _, mode := range []struct {
		name string
		flag []string
	}{{"as referrers", nil}, {"by the tag scheme", []string{"--new-bundle-format=false"}}} {
		r.ok("sign "+mode.name, cosignCommand(r, "sign", cosignSign, mode.flag, []string{image})...)
		r.shows("verify "+mode.name, []string{"were verified"}, cosignCommand(r, "verify", cosignVerify, mode.flag, []string{image})...)
		r.shows("verify by tag "+mode.name, []string{"were verified"}, cosignCommand(r, "verify", cosignVerify, mode.flag, []string{r.repo("img") + ":v1"})...)
		r.ok("attest "+mode.name, cosignCommand(r, "attest", cosignSign, statement, mode.flag, []string{image})...)
		r.shows("verify the attestation "+mode.name, []string{"were verified"}, cosignCommand(r, "verify-attestation", cosignVerify, []string{"--type", "custom"}, mode.flag, []string{image})...)
	}
	r.shows("list what is attached", []string{"Signatures for an image tag", "via OCI referrer"}, cosignCommand(r, "tree", []string{image})...)
	r.refused("verify with another key", []string{"no matching"}, cosignCommand(r, "verify", []string{"--key", "first.pub", "--insecure-ignore-tlog=true", image})...)
	r.shows("the tags of the tag scheme", []string{".sig", ".att"}, "crane", "ls", r.repo("img"))

	r.ok("publish a pack with crane", "crane", "push", "pack", r.pack()+":1.2.0")
	version := r.pack() + "@" + r.tagged("pack")
	r.ok("sign a version", cosignCommand(r, "sign", cosignSign, []string{version})...)
	r.ok("sign a version by the tag scheme", cosignCommand(r, "sign", cosignSign, []string{"--new-bundle-format=false", version})...)
	r.shows("verify a version", []string{"were verified"}, cosignCommand(r, "verify", cosignVerify, []string{r.pack() + ":1.2.0"})...)
	r.shows("verify a version by the tag scheme", []string{"were verified"}, cosignCommand(r, "verify", cosignVerify, []string{"--new-bundle-format=false", r.pack() + ":1.2.0"})...)

	in := func(account string) []string {
		return []string{"cosign", "login", r.host, "-u", account, "--password-stdin"}
	}
	bob := hides(r, r.repo("img"), in, notThere, cosignCommand(r, "verify", cosignVerify, []string{r.repo("img") + ":v1"})...)
	bob.refused("push over the quota", overQuota, cosignCommand(r, "copy", []string{r.repo("img") + ":v1", r.foreign("own") + ":v1"})...)
	r.ok("copy an image with its signatures", cosignCommand(r, "copy", []string{r.repo("img") + ":v1", r.repo("copied") + ":v1"})...)
	r.shows("verify the copy", []string{"were verified"}, cosignCommand(r, "verify", cosignVerify, []string{"--new-bundle-format=false", r.repo("copied") + ":v1"})...)
	r.ok("remove signatures", cosignCommand(r, "clean", []string{"--force", r.repo("copied") + ":v1"})...)
	r.refused("verify what was removed", []string{"no signatures found"}, cosignCommand(r, "verify", cosignVerify, []string{"--new-bundle-format=false", r.repo("copied") + ":v1"})...)
	r.refused("copy below another's name", notYours("bob/img"), cosignCommand(r, "copy", []string{r.repo("img") + ":v1", r.foreign("img") + ":v1"})...)
	r.ok("sign out with crane", "crane", "auth", "logout", r.host)
	r.refused("sign after signing out", headOnly, cosignCommand(r, "attest", cosignSign, statement, []string{image})...)
}
