package main

import "strings"

func helmChart(r *round) {
	r.ok("create a chart", "helm", "create", "demo")
	r.ok("package it", "helm", "package", "demo")
}

func helmTLS(r *round) {
	r.with(r.people.alice).ok("sign in", "helm", "registry", "login", r.host, "-u", "alice", "--password-stdin")
	helmChart(r)
	r.ok("push", "helm", "push", "demo-0.1.0.tgz", "oci://"+r.repo("charts"))
	r.ok("make a folder", "mkdir", "pulled")
	r.ok("pull", "helm", "pull", "oci://"+r.repo("charts")+"/demo", "--version", "0.1.0", "-d", "pulled")
	r.same("the bytes pulled", r.read("pulled/demo-0.1.0.tgz"), r.read("demo-0.1.0.tgz"))
}

func helm(r *round) {
	charts := "oci://" + r.repo("charts")
	helmChart(r)
	r.refused("a push before signing in", headOnly, "helm", "push", "--plain-http", "demo-0.1.0.tgz", charts)
	r.with("wrong").refused("a wrong password", badSignIn, "helm", "registry", "login", r.host, "--plain-http", "-u", "alice", "--password-stdin")
	r.with(r.people.alice).ok("sign in", "helm", "registry", "login", r.host, "--plain-http", "-u", "alice", "--password-stdin")
	pushed := r.shows("push", []string{"Digest: sha256:"}, "helm", "push", "--plain-http", "demo-0.1.0.tgz", charts)
	r.ok("push it again", "helm", "push", "--plain-http", "demo-0.1.0.tgz", charts)
	r.ok("make folders", "mkdir", "by-tag", "newest")
	r.ok("pull a version", "helm", "pull", "--plain-http", charts+"/demo", "--version", "0.1.0", "-d", "by-tag")
	r.ok("pull the newest", "helm", "pull", "--plain-http", charts+"/demo", "-d", "newest")
	r.same("the bytes pulled", r.read("by-tag/demo-0.1.0.tgz"), r.read("demo-0.1.0.tgz"))
	r.same("the bytes of the newest", r.read("newest/demo-0.1.0.tgz"), r.read("demo-0.1.0.tgz"))
	if _, digest, ok := strings.Cut(pushed, "Digest: "); ok {
		r.shows("show by digest", []string{"name: demo"}, "helm", "show", "chart", "--plain-http", charts+"/demo@"+strings.TrimSpace(digest))
	}
	r.shows("show", []string{"name: demo"}, "helm", "show", "chart", "--plain-http", charts+"/demo", "--version", "0.1.0")
	r.shows("render", []string{"kind: Deployment"}, "helm", "template", "x", "--plain-http", charts+"/demo", "--version", "0.1.0")
	r.refused("pull what never was", []string{"not found"}, "helm", "pull", "--plain-http", charts+"/never", "--version", "0.1.0")
	r.refused("push below another's name", notYours("bob/charts/demo"), "helm", "push", "--plain-http", "demo-0.1.0.tgz", "oci://"+r.foreign("charts"))

	in := func(account string) []string {
		return []string{"helm", "registry", "login", r.host, "--plain-http", "-u", account, "--password-stdin"}
	}
	bob := hides(r, r.repo("charts/demo"), in, []string{"not found"}, "helm", "show", "chart", "--plain-http", charts+"/demo", "--version", "0.1.0")
	bob.refused("push over the quota", overQuota, "helm", "push", "--plain-http", "demo-0.1.0.tgz", "oci://"+r.foreign("own"))
	robot(r, in, func(repository string) []string {
		return []string{"helm", "push", "--plain-http", "demo-0.1.0.tgz", "oci://" + repository}
	})
	r.with(r.people.alice).ok("sign in with crane", "crane", "auth", "login", r.host, "-u", "alice", "--password-stdin")
	r.ok("publish a pack with crane", "crane", "push", "pack", r.pack()+":1.2.0")
	r.ok("create a chart of that name", "helm", "create", r.packName())
	r.ok("package it", "helm", "package", r.packName())
	r.refused("push a chart among packs", packsOnly, "helm", "push", "--plain-http", r.packName()+"-0.1.0.tgz", "oci://"+r.host+"/alice")
	r.ok("sign out with crane", "crane", "auth", "logout", r.host) // helm looks there too
	r.ok("sign out", "helm", "registry", "logout", r.host)
	r.refused("a push after signing out", headOnly, "helm", "push", "--plain-http", "demo-0.1.0.tgz", charts)
}
