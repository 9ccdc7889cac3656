package main

import "strings"

func orasTLS(r *round) {
	wrong := badSignIn
	if r.reg.Basic {
		wrong = badToken
	}
	r.with("wrong").refused("a wrong password", wrong, "oras", "login", r.host, "-u", "alice", "--password-stdin")
	r.with(r.people.alice).ok("sign in", "oras", "login", r.host, "-u", "alice", "--password-stdin")
	r.ok("push", "oras", "push", r.repo("art")+":1", "file.txt:text/plain")
	r.ok("pull", "oras", "pull", r.repo("art")+":1", "-o", "pulled")
	r.same("the bytes pulled", r.read("pulled/file.txt"), r.read("file.txt"))
}

func oras(r *round) {
	oras := func(args ...string) []string { // the verb, then --plain-http, then the rest
		n := 1
		for n < len(args) && !strings.HasPrefix(args[n], "-") && !strings.ContainsAny(args[n], "/.:") && n < 3 {
			n++
		}
		return append(append(append([]string{"oras"}, args[:n]...), "--plain-http"), args[n:]...)
	}
	art, copied := r.repo("art"), r.repo("copied")
	r.refused("a push before signing in", headOnly, oras("push", art+":1", "file.txt:text/plain")...)
	r.with("wrong").refused("a wrong password", badSignIn, oras("login", r.host, "-u", "alice", "--password-stdin")...)
	r.with(r.people.alice).ok("sign in", oras("login", r.host, "-u", "alice", "--password-stdin")...)

	r.ok("push", oras("push", art+":1", "--artifact-type", "application/vnd.example.thing", "file.txt:text/plain")...)
	digest := strings.TrimSpace(r.ok("resolve", oras("resolve", art+":1")...))
	r.ok("pull by tag", oras("pull", art+":1", "-o", "by-tag")...)
	r.ok("pull by digest", oras("pull", art+"@"+digest, "-o", "by-digest")...)
	r.same("the bytes pulled by tag", r.read("by-tag/file.txt"), r.read("file.txt"))
	r.same("the bytes pulled by digest", r.read("by-digest/file.txt"), r.read("file.txt"))
	r.ok("tag", oras("tag", art+":1", "stable", "newest")...)
	r.shows("list tags", []string{"1\n", "stable\n", "newest\n"}, oras("repo", "tags", art)...)
	r.shows("list repositories", []string{"alice/oras/art"}, oras("repo", "ls", r.host)...)
	r.shows("push a blob", []string{"Pushed"}, oras("blob", "push", art, "rootfs.tar")...)
	r.ok("fetch a manifest", oras("manifest", "fetch", art+":1", "-o", "manifest.json")...)
	r.ok("push a manifest byte for byte", oras("manifest", "push", art+":again", "manifest.json")...)
	r.same("the digest of that manifest", strings.TrimSpace(r.ok("resolve it", oras("resolve", art+":again")...)), digest)

	orasReferrers(r, oras, digest)
	orasIndexes(r, oras)
	orasPack(r, oras)

	in := func(account string) []string { return oras("login", r.host, "-u", account, "--password-stdin") }
	bob := hides(r, art, in, []string{"not found"}, oras("manifest", "fetch", art+":1")...)
	bob.refused("push over the quota", overQuota, oras("push", r.foreign("own")+":1", "file.txt:text/plain")...)
	robot(r, in, func(repository string) []string { return oras("push", repository+":1", "file.txt:text/plain") })
	r.refused("delete a blob in use", blobInUse, oras("blob", "delete", "-f", art+"@"+r.layerOf("manifest.json"))...)
	r.ok("delete a manifest", oras("manifest", "delete", "-f", copied+":1")...)
	r.refused("pull what was deleted", []string{"not found"}, oras("pull", copied+":1")...)
	r.refused("push below another's name", notYours("bob/art"), oras("push", r.foreign("art")+":1", "file.txt:text/plain")...)
	r.ok("sign out", "oras", "logout", r.host)
	r.refused("a push after signing out", headOnly, oras("push", art+":2", "file.txt:text/plain")...)
}

// orasReferrers attaches by the referrers API and by the tag scheme, and copies a graph.
func orasReferrers(r *round, oras func(...string) []string, digest string) {
	art, copied := r.repo("art"), r.repo("copied")
	r.ok("attach", oras("attach", art+":1", "--artifact-type", "application/vnd.example.sbom", "predicate.json")...)
	r.ok("attach another", oras("attach", art+":1", "--artifact-type", "application/vnd.example.scan", "predicate.json")...)
	r.ok("attach by the tag scheme", oras("attach", art+":1", "--distribution-spec", "v1.1-referrers-tag", "--artifact-type", "application/vnd.example.old", "predicate.json")...)
	r.shows("discover", []string{"application/vnd.example.sbom", "application/vnd.example.scan", "application/vnd.example.old"}, oras("discover", art+":1")...)
	filtered := r.ok("discover one type", oras("discover", art+":1", "--artifact-type", "application/vnd.example.scan")...)
	r.same("the filter leaves out others", word(strings.Contains(filtered, "sbom")), "false")
	r.shows("discover by the tag scheme", []string{"application/vnd.example.old"}, oras("discover", art+":1", "--distribution-spec", "v1.1-referrers-tag")...)
	r.shows("copy with referrers, mounting", []string{"Mounted"}, "oras", "cp", "--from-plain-http", "--to-plain-http", "-r", art+":1", copied+":1")
	r.shows("the copy has its referrers", []string{"application/vnd.example.sbom", digest}, oras("discover", copied+":1")...)
	r.ok("back up a repository", oras("backup", art, "--output", "backup")...)
	r.ok("restore it elsewhere", oras("restore", r.repo("restored"), "--input", "backup")...)
}

func orasIndexes(r *round, oras func(...string) []string) {
	art := r.repo("art")
	r.ok("push an index of indexes", "oras", "cp", "--from-oci-layout", "nested:v1", "--to-plain-http", r.repo("nested")+":v1")
	r.same("its digest", strings.TrimSpace(r.ok("resolve it", oras("resolve", r.repo("nested")+":v1")...)), r.tagged("nested"))
	r.ok("create an index", oras("manifest", "index", "create", art+":index", "1", "again")...)
	r.ok("push a sparse index", oras("manifest", "push", r.repo("sparse")+":v1", "multi/blobs/sha256/"+strings.TrimPrefix(r.tagged("multi"), "sha256:"))...)
	r.same("the sparse index stays as it is", strings.TrimSpace(r.ok("resolve it", oras("resolve", r.repo("sparse")+":v1")...)), r.tagged("multi"))
}

func orasPack(r *round, oras func(...string) []string) {
	r.refused("publish a pack under a wrong tag", wrongTag, "oras", "cp", "--from-oci-layout", "pack:1.2.0", "--to-plain-http", r.pack()+":9.9.9")
	r.ok("publish a pack", "oras", "cp", "--from-oci-layout", "pack:1.2.0", "--to-plain-http", r.pack()+":1.2.0")
	r.ok("publish it again", "oras", "cp", "--from-oci-layout", "pack:1.2.0", "--to-plain-http", r.pack()+":1.2.0")
	r.refused("publish other bytes", versionTaken, "oras", "cp", "--from-oci-layout", "pack-other:1.2.0", "--to-plain-http", r.pack()+":1.2.0")
	r.same("the version's digest", strings.TrimSpace(r.ok("resolve the version", oras("resolve", r.pack()+":1.2.0")...)), r.tagged("pack"))
	r.refused("delete a version", versionStays, oras("manifest", "delete", "-f", r.pack()+":1.2.0")...)
	r.refused("push another artifact among packs", packsOnly, oras("push", r.pack()+":2", "file.txt:text/plain")...)
	r.ok("attach to a version", oras("attach", r.pack()+":1.2.0", "--artifact-type", "application/vnd.example.sbom", "predicate.json")...)
	r.ok("copy a version back", "oras", "cp", "--from-plain-http", r.pack()+":1.2.0", "--to-oci-layout", "pack-back:1.2.0")
	r.same("the bytes of the version", r.tagged("pack-back"), r.tagged("pack"))
}
