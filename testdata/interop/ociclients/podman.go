package main

import "strings"

// podmanCommand keeps podman's images in the working folder, in the form that needs no kernel feature.
func podmanCommand(r *round, args ...string) []string {
	return append([]string{"podman", "--root", r.file("storage"), "--runroot", r.file("run"), "--storage-driver", "vfs",
		"--cgroup-manager", "cgroupfs", "--events-backend", "none"}, args...)
}

func podmanTLS(r *round) {
	podman := func(args ...string) []string { return podmanCommand(r, args...) }
	r.with(r.people.alice).ok("sign in", podman("login", r.host, "-u", "alice", "--password-stdin")...)
	r.ok("make an image", podman("import", "rootfs.tar", r.repo("img")+":v1")...)
	r.ok("push", podman("push", r.repo("img")+":v1")...)
	r.ok("forget it", podman("rmi", r.repo("img")+":v1")...)
	r.ok("pull", podman("pull", r.repo("img")+":v1")...)
}

func podman(r *round) {
	podman := func(args ...string) []string { return podmanCommand(r, args...) }
	plain := "--tls-verify=false"
	img := r.repo("img")
	id := strings.TrimSpace(r.ok("make an image", podman("import", "-q", "rootfs.tar", img+":v1")...))
	r.refused("a push before signing in", signInFirst, podman("push", plain, img+":v1")...)
	r.with("wrong").refused("a wrong password", []string{"invalid username/password"}, podman("login", plain, r.host, "-u", "alice", "--password-stdin")...)
	r.with(r.people.alice).ok("sign in", podman("login", plain, r.host, "-u", "alice", "--password-stdin")...)

	r.ok("push", podman("push", plain, "--digestfile", "digest", img+":v1")...)
	r.ok("forget it", podman("rmi", "-f", img+":v1")...)
	r.ok("pull by tag", podman("pull", plain, img+":v1")...)
	r.same("the image pulled by tag", strings.TrimSpace(r.ok("its id", podman("images", "-q", "--no-trunc", img+":v1")...)), id)
	r.ok("forget it again", podman("rmi", "-f", img+":v1")...)
	r.same("the image pulled by digest", "sha256:"+strings.TrimSpace(r.ok("pull by digest", podman("pull", "-q", plain, img+"@"+r.read("digest"))...)), id)
	r.ok("pull it once more", podman("pull", "-q", plain, img+":v1")...)
	r.ok("push in Docker's format", podman("push", plain, "--format", "v2s2", img+":v1", r.repo("docker")+":v1")...)
	r.ok("push a copy", podman("push", plain, img+":v1", r.repo("copied")+":v1")...)
	r.shows("list tags", []string{"v1"}, podman("search", plain, "--list-tags", img)...)
	r.shows("search", []string{"alice/podman/img"}, podman("search", plain, r.host+"/alice")...)
	r.ok("make an index", podman("manifest", "create", r.repo("index")+":v1")...)
	r.ok("add an image to it", podman("manifest", "add", plain, r.repo("index")+":v1", "docker://"+img+":v1")...)
	r.ok("push the index", podman("manifest", "push", plain, "--all", r.repo("index")+":v1", "docker://"+r.repo("index")+":v1")...)
	r.same("the image pulled through the index", "sha256:"+strings.TrimSpace(r.ok("pull through the index", podman("pull", "-q", plain, r.repo("index")+":v1")...)), id)

	in := func(account string) []string {
		return podman("login", plain, r.host, "-u", account, "--password-stdin")
	}
	bob := hides(r, img, in, notThere, podman("pull", plain, img+":v1")...)
	bob.refused("push over the quota", overQuota, podman("push", plain, img+":v1", r.foreign("own")+":v1")...)
	robot(r, in, func(repository string) []string { return podman("push", plain, img+":v1", repository+":v1") })
	r.refused("pull what never was", notThere, podman("pull", plain, r.repo("never")+":v1")...)
	r.refused("push below another's name", notYours("bob/img"), podman("push", plain, img+":v1", r.foreign("img")+":v1")...)
	r.ok("publish a pack with skopeo", "skopeo", "copy", "--dest-tls-verify=false", "oci:pack:1.2.0", "docker://"+r.pack()+":1.2.0")
	r.refused("push an image among packs", packsOnly, podman("push", plain, img+":v1", r.pack()+":v1")...)
	r.ok("sign out", podman("logout", r.host)...)
	r.refused("a push after signing out", signInFirst, podman("push", plain, img+":v1", r.repo("img")+":v2")...)
}
