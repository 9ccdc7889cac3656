package main

import "strings"

// regctlSignIn gives regctl its password; it checks it at once.
func regctlSignIn(r *round) {
	r.with(r.people.alice).ok("sign in", "regctl", "registry", "login", r.host, "-u", "alice", "--pass-stdin")
}

func regctlTLS(r *round) {
	regctlSignIn(r)
	r.ok("push", "regctl", "image", "copy", "ocidir://image:v1", r.repo("img")+":v1")
	r.ok("pull", "regctl", "image", "copy", r.repo("img")+":v1", "ocidir://pulled:v1")
	r.same("the bytes pulled", r.tagged("pulled"), r.tagged("image"))
}

func regctl(r *round) {
	img, art, copied := r.repo("img"), r.repo("art"), r.repo("copied")
	r.ok("allow plain HTTP", "regctl", "registry", "set", r.host, "--tls", "disabled", "--skip-check")
	r.refused("a push before signing in", []string{"unauthorized"}, "regctl", "image", "copy", "ocidir://image:v1", img+":v1")
	r.with("wrong").refused("a wrong password", []string{"unauthorized"}, "regctl", "registry", "login", r.host, "-u", "alice", "--pass-stdin")
	regctlSignIn(r)

	r.ok("push", "regctl", "image", "copy", "ocidir://image:v1", img+":v1")
	r.same("digest", strings.TrimSpace(r.ok("ask for the digest", "regctl", "image", "digest", img+":v1")), r.tagged("image"))
	r.ok("pull by tag", "regctl", "image", "copy", img+":v1", "ocidir://by-tag:v1")
	r.ok("pull by digest", "regctl", "image", "copy", img+"@"+r.tagged("image"), "ocidir://by-digest:v1")
	r.same("the bytes pulled by tag", r.tagged("by-tag"), r.tagged("image"))
	r.same("the bytes pulled by digest", r.tagged("by-digest"), r.tagged("image"))
	r.shows("read a file of an image", []string{"hello from regctl"}, "regctl", "image", "get-file", img+":v1", "hello.txt")
	r.ok("export", "regctl", "image", "export", img+":v1", "export.tar")
	r.ok("import", "regctl", "image", "import", r.repo("imported")+":v1", "export.tar")
	r.same("the imported digest", strings.TrimSpace(r.ok("ask for the digest", "regctl", "image", "digest", r.repo("imported")+":v1")), r.tagged("image"))
	r.ok("copy", "regctl", "image", "copy", img+":v1", copied+":v1")
	r.shows("list tags", []string{"v1"}, "regctl", "tag", "ls", img)
	r.shows("list repositories", []string{"alice/regctl/img"}, "regctl", "repo", "ls", r.host)
	r.ok("change an image", "regctl", "image", "mod", img+":v1", "--create", img+":annotated", "--annotation", "checked=yes")
	r.ok("an image under SHA-512", "regctl", "image", "mod", img+":v1", "--create", img+":sha512", "--digest-algo", "sha512")
	r.shows("its digest", []string{"sha512:"}, "regctl", "manifest", "get", "--format", "raw-body", img+":sha512")

	regctlReferrers(r, art)
	r.ok("push an index of indexes", "regctl", "image", "copy", "ocidir://nested:v1", r.repo("nested")+":v1")
	r.same("its digest", strings.TrimSpace(r.ok("ask for the digest", "regctl", "image", "digest", r.repo("nested")+":v1")), r.tagged("nested"))
	r.ok("copy one platform of an index", "regctl", "image", "copy", "--platforms", "linux/arm64", "ocidir://multi:v1", r.repo("sparse")+":v1")
	r.same("the sparse index stays as it is", strings.TrimSpace(r.ok("ask for the digest", "regctl", "image", "digest", r.repo("sparse")+":v1")), r.tagged("multi"))
	r.ok("create an index", "regctl", "index", "create", r.repo("index")+":v1", "--ref", img+":v1")
	r.ok("add to it", "regctl", "index", "add", r.repo("index")+":v1", "--ref", img+":annotated")

	r.refused("publish a pack under a wrong tag", wrongTag, "regctl", "image", "copy", "ocidir://pack:1.2.0", r.pack()+":9.9.9")
	r.ok("publish a pack", "regctl", "image", "copy", "ocidir://pack:1.2.0", r.pack()+":1.2.0")
	r.ok("publish it again", "regctl", "image", "copy", "ocidir://pack:1.2.0", r.pack()+":1.2.0")
	r.refused("publish other bytes", versionTaken, "regctl", "image", "copy", "ocidir://pack-other:1.2.0", r.pack()+":1.2.0")
	r.refused("delete a version", versionStays, "regctl", "manifest", "delete", r.pack()+"@"+r.tagged("pack"))
	r.refused("delete a version's tag", []string{"can't be"}, "regctl", "tag", "rm", r.pack()+":1.2.0")

	r.as("bob").ok("allow plain HTTP to another", "regctl", "registry", "set", r.host, "--tls", "disabled", "--skip-check")
	r.as("robot").ok("allow plain HTTP to a robot", "regctl", "registry", "set", r.host, "--tls", "disabled", "--skip-check")
	in := func(account string) []string {
		return []string{"regctl", "registry", "login", r.host, "-u", account, "--pass-stdin"}
	}
	bob := hides(r, img, in, notThere, "regctl", "manifest", "get", img+":v1")
	bob.refused("push over the quota", overQuota, "regctl", "image", "copy", "ocidir://image:v1", r.foreign("own")+":v1")
	robot(r, in, func(repository string) []string {
		return []string{"regctl", "image", "copy", "ocidir://image:v1", repository + ":v1"}
	})
	r.ok("delete a tag", "regctl", "tag", "rm", img+":annotated")
	r.ok("delete a manifest", "regctl", "manifest", "delete", copied+"@"+r.tagged("image"))
	r.refused("pull what was deleted", []string{"not found"}, "regctl", "manifest", "get", copied+":v1")
	r.refused("read what never was", notThere, "regctl", "manifest", "get", r.repo("never")+":v1")
	r.refused("push below another's name", notYours("bob/img"), "regctl", "image", "copy", "ocidir://image:v1", r.foreign("img")+":v1")
	r.ok("sign out", "regctl", "registry", "logout", r.host)
	r.refused("a push after signing out", []string{"unauthorized"}, "regctl", "image", "copy", "ocidir://image:v1", img+":v2")
}

func regctlReferrers(r *round, art string) {
	r.ok("push an artifact", "regctl", "artifact", "put", "--artifact-type", "application/vnd.example.thing", "-f", "file.txt", "--file-media-type", "text/plain", art+":1")
	r.same("the artifact's bytes", r.ok("get it", "regctl", "artifact", "get", art+":1"), r.read("file.txt"))
	r.ok("attach", "regctl", "artifact", "put", "--artifact-type", "application/vnd.example.sbom", "-f", "predicate.json", "--subject", art+":1")
	r.ok("attach another", "regctl", "artifact", "put", "--artifact-type", "application/vnd.example.scan", "-f", "predicate.json", "--subject", art+":1")
	r.shows("list referrers", []string{"application/vnd.example.sbom", "application/vnd.example.scan"}, "regctl", "artifact", "list", art+":1")
	filtered := r.ok("list one type", "regctl", "artifact", "list", "--filter-artifact-type", "application/vnd.example.scan", art+":1")
	r.same("the filter leaves out others", word(strings.Contains(filtered, "sbom")), "false")
	r.ok("copy with referrers", "regctl", "image", "copy", "--referrers", art+":1", r.repo("art-copy")+":1")
	r.shows("the copy has them", []string{"application/vnd.example.sbom"}, "regctl", "artifact", "tree", r.repo("art-copy")+":1")
}
