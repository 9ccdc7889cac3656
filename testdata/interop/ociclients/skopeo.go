package main

import "strings"

func skopeoTLS(r *round) {
	r.with(r.people.alice).ok("sign in", "skopeo", "login", r.host, "-u", "alice", "--password-stdin")
	r.ok("push", "skopeo", "copy", "oci:image:v1", "docker://"+r.repo("img")+":v1")
	r.ok("pull", "skopeo", "copy", "docker://"+r.repo("img")+":v1", "oci:pulled:v1")
	r.same("the bytes pulled", r.tagged("pulled"), r.tagged("image"))
}

func skopeo(r *round) {
	img, copied := "docker://"+r.repo("img"), "docker://"+r.repo("copied")
	push := func(from, to string) []string {
		return []string{"skopeo", "copy", "--dest-tls-verify=false", "--all", from, to}
	}
	r.refused("a push before signing in", signInFirst, push("oci:image:v1", img+":v1")...)
	r.with("wrong").refused("a wrong password", []string{"invalid username/password"}, "skopeo", "login", "--tls-verify=false", r.host, "-u", "alice", "--password-stdin")
	r.with(r.people.alice).ok("sign in", "skopeo", "login", "--tls-verify=false", r.host, "-u", "alice", "--password-stdin")

	r.ok("push", push("oci:image:v1", img+":v1")...)
	r.shows("inspect", []string{r.tagged("image")}, "skopeo", "inspect", "--tls-verify=false", img+":v1")
	r.ok("pull by tag", "skopeo", "copy", "--src-tls-verify=false", img+":v1", "oci:by-tag:v1")
	r.ok("pull by digest", "skopeo", "copy", "--src-tls-verify=false", img+"@"+r.tagged("image"), "oci:by-digest:v1")
	r.same("the bytes pulled by tag", r.tagged("by-tag"), r.tagged("image"))
	r.same("the bytes pulled by digest", r.tagged("by-digest"), r.tagged("image"))
	r.ok("copy", "skopeo", "copy", "--src-tls-verify=false", "--dest-tls-verify=false", img+":v1", copied+":v1")
	r.shows("list tags", []string{`"v1"`}, "skopeo", "list-tags", "--tls-verify=false", img)
	r.ok("copy a whole repository", "skopeo", "sync", "--src", "docker", "--dest", "docker", "--src-tls-verify=false", "--dest-tls-verify=false", r.repo("img"), r.repo("synced"))
	r.ok("push an index", push("oci:multi:v1", "docker://"+r.repo("multi")+":v1")...)
	raw := r.ok("read it raw", "skopeo", "inspect", "--raw", "--tls-verify=false", "docker://"+r.repo("multi")+":v1")
	r.same("the index stays as it is", raw, r.read("multi/blobs/sha256/"+strings.TrimPrefix(r.tagged("multi"), "sha256:")))
	r.ok("push an index alone", "skopeo", "copy", "--multi-arch", "index-only", "--dest-tls-verify=false", "oci:multi:v1", "docker://"+r.repo("sparse")+":v1")
	r.ok("an image in Docker's format", "skopeo", "copy", "--src-tls-verify=false", "--dest-tls-verify=false", "--format", "v2s2", img+":v1", "docker://"+r.repo("docker")+":v1")

	pack := "docker://" + r.pack()
	r.refused("publish a pack under a wrong tag", wrongTag, push("oci:pack:1.2.0", pack+":9.9.9")...)
	r.ok("publish a pack", push("oci:pack:1.2.0", pack+":1.2.0")...)
	r.ok("publish it again", push("oci:pack:1.2.0", pack+":1.2.0")...)
	r.refused("publish other bytes", versionTaken, push("oci:pack-other:1.2.0", pack+":1.2.0")...)
	r.refused("delete a version", versionStays, "skopeo", "delete", "--tls-verify=false", pack+":1.2.0")

	in := func(account string) []string {
		return []string{"skopeo", "login", "--tls-verify=false", r.host, "-u", account, "--password-stdin"}
	}
	bob := hides(r, r.repo("img"), in, notThere, "skopeo", "inspect", "--tls-verify=false", img+":v1")
	bob.refused("push over the quota", overQuota, push("oci:image:v1", "docker://"+r.foreign("own")+":v1")...)
	robot(r, in, func(repository string) []string { return push("oci:image:v1", "docker://"+repository+":v1") })
	r.ok("delete", "skopeo", "delete", "--tls-verify=false", copied+":v1")
	r.refused("pull what was deleted", []string{"has no tag"}, "skopeo", "inspect", "--tls-verify=false", copied+":v1")
	r.refused("read what never was", notThere, "skopeo", "inspect", "--tls-verify=false", "docker://"+r.repo("never")+":v1")
	r.refused("push below another's name", notYours("bob/img"), push("oci:image:v1", "docker://"+r.foreign("img")+":v1")...)
	r.ok("sign out", "skopeo", "logout", r.host)
	r.refused("a push after signing out", signInFirst, push("oci:image:v1", img+":v2")...)
}
