package main

import "strings"

func craneTLS(r *round) {
	r.with(r.people.alice).ok("sign in", "crane", "auth", "login", r.host, "-u", "alice", "--password-stdin")
	r.ok("push", "crane", "push", "image", r.repo("img")+":v1")
	r.ok("pull", "crane", "pull", "--format=oci", r.repo("img")+":v1", "pulled")
	r.same("the bytes pulled", r.tagged("pulled"), r.tagged("image"))
}

func crane(r *round) {
	img, copied := r.repo("img"), r.repo("copied")
	r.refused("a push before signing in", headOnly, "crane", "push", "image", img+":v1")
	r.with("wrong").ok("crane stores a wrong password", "crane", "auth", "login", r.host, "-u", "alice", "--password-stdin")
	r.refused("a push with it", badSignIn, "crane", "push", "image", img+":v1")
	r.with(r.people.alice).ok("sign in", "crane", "auth", "login", r.host, "-u", "alice", "--password-stdin")

	r.ok("push", "crane", "push", "image", img+":v1")
	r.same("digest", strings.TrimSpace(r.ok("ask for the digest", "crane", "digest", img+":v1")), r.tagged("image"))
	r.ok("pull by tag", "crane", "pull", "--format=oci", img+":v1", "by-tag")
	r.ok("pull by digest", "crane", "pull", "--format=oci", img+"@"+r.tagged("image"), "by-digest")
	r.same("the bytes pulled by tag", r.tagged("by-tag"), r.tagged("image"))
	r.same("the bytes pulled by digest", r.tagged("by-digest"), r.tagged("image"))
	r.shows("validate what lies there", []string{"PASS"}, "crane", "validate", "--remote", img+":v1")
	r.shows("export the files", []string{"hello from crane"}, "crane", "export", img+":v1", "-")
	r.ok("append a layer", "crane", "append", "-b", img+":v1", "-f", "rootfs.tar", "-t", img+":more")
	r.ok("change an image", "crane", "mutate", img+":v1", "--label", "checked=yes", "-t", img+":labelled")
	r.shows("copy, mounting", []string{"mounted blob"}, "crane", "copy", img+":v1", copied+":v1")
	r.ok("copy all tags", "crane", "copy", "--all-tags", img, r.repo("all"))
	r.ok("tag", "crane", "tag", img+":v1", "stable")
	r.shows("list tags", []string{"v1\n", "stable\n", "more\n"}, "crane", "ls", img)
	r.shows("list repositories", []string{"alice/crane/img", "alice/crane/copied"}, "crane", "catalog", r.host)

	r.ok("push an index", "crane", "push", "--index", "flat", r.repo("multi")+":v1")
	r.same("its digest", strings.TrimSpace(r.ok("ask for the digest", "crane", "digest", r.repo("multi")+":v1")), digestOf(r.read("flat/index.json")))
	r.ok("push an index of indexes", "crane", "push", "--index", "nested", r.repo("nested")+":v1")
	r.ok("add to an index", "crane", "index", "append", r.repo("multi")+":v1", "-m", img+":v1", "-t", r.repo("multi")+":v2")
	r.ok("filter an index", "crane", "index", "filter", r.repo("multi")+":v1", "--platform", "linux/arm64", "-t", r.repo("multi")+":arm")
	r.ok("pull one platform", "crane", "pull", "--format=oci", "--platform", "linux/arm64", r.repo("multi")+":v1", "arm")

	r.refused("publish a pack under a wrong tag", wrongTag, "crane", "push", "pack", r.pack()+":9.9.9")
	r.ok("publish a pack", "crane", "push", "pack", r.pack()+":1.2.0")
	r.ok("publish it again", "crane", "push", "pack", r.pack()+":1.2.0")
	r.refused("publish other bytes", versionTaken, "crane", "push", "pack-other", r.pack()+":1.2.0")
	r.refused("move a version's tag", []string{"versions never change"}, "crane", "tag", r.pack()+":1.2.0", "stable")
	r.refused("delete a version", versionStays, "crane", "delete", r.pack()+"@"+r.tagged("pack"))

	in := func(account string) []string {
		return []string{"crane", "auth", "login", r.host, "-u", account, "--password-stdin"}
	}
	bob := hides(r, img, in, notThere, "crane", "manifest", img+":v1")
	bob.refused("push over the quota", overQuota, "crane", "push", "image", r.foreign("own")+":v1")
	robot(r, in, func(repository string) []string { return []string{"crane", "push", "image", repository + ":v1"} })
	r.ok("delete a tag", "crane", "delete", copied+":v1")
	r.ok("delete a manifest", "crane", "delete", img+"@"+r.tagged("image"))
	r.refused("pull what was deleted", []string{"MANIFEST_UNKNOWN"}, "crane", "manifest", img+":v1")
	r.refused("read what never was", notThere, "crane", "manifest", r.repo("never")+":v1")
	r.refused("push below another's name", notYours("bob/img"), "crane", "push", "image", r.foreign("img")+":v1")
	r.ok("sign out", "crane", "auth", "logout", r.host)
	r.refused("a push after signing out", headOnly, "crane", "push", "image", img+":v2")
}
