package metatest

import (
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/suite"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

var suiteTests = map[string]func(*testing.T, registry.MetaStore){
	"SuiteVersions": testSuiteVersions,
	"SuiteFiles":    testSuiteFiles,
	"SuiteLinks":    testSuiteLinks,
	"Runners":       testRunners,
}

const webshop = "alice/environments/web-shop"

// suiteVersion makes a version of alice's Web-Shop with every field set.
func suiteVersion(version string, n int) registry.SuiteVersion {
	return registry.SuiteVersion{
		Repository: webshop, Kind: suite.Environment, Owner: "alice", Name: "Web-Shop", Version: version, Key: "key of " + version,
		Dialect: dialect.TunePlane, Manifest: sum("manifest " + version), Tree: sum("tree " + version), Document: []byte(`{"z":1,"a":  2}`),
		Files: 3, Bytes: 1 << 33, CreatedBy: "root", CreatedAt: at(n),
	}
}

func testSuiteVersions(t *testing.T, s registry.MetaStore) {
	update(t, s, func(tx registry.Tx) error { return tx.EnsureRepository(repository(webshop)) })
	first, second := suiteVersion("v1", 0), suiteVersion("v2", 1)
	same(t, "suites held", view(t, s, func(tx registry.Tx) (bool, error) { return tx.HoldsSuites(suite.Environment) }), false)
	for _, v := range []registry.SuiteVersion{first, second} {
		update(t, s, func(tx registry.Tx) error { return tx.InsertSuiteVersion(v) })
	}
	one := func(version string) func(registry.Tx) (registry.SuiteVersion, error) {
		return func(tx registry.Tx) (registry.SuiteVersion, error) { return tx.SuiteVersion(webshop, version) }
	}
	same(t, "a version", view(t, s, one("v1")), first)
	missing(t, s, "an unknown version", registry.NotFound, one("v3"))
	missing(t, s, "a version in other case", registry.NotFound, one("V1"))
	brief := func(list ...registry.SuiteVersion) []registry.SuiteVersion {
		for i := range list {
			list[i].Document = nil
		}
		return list
	}
	same(t, "versions by time", view(t, s, func(tx registry.Tx) ([]registry.SuiteVersion, error) { return tx.SuiteVersions(webshop) }), brief(first, second))
	same(t, "all of a kind", view(t, s, func(tx registry.Tx) ([]registry.SuiteVersion, error) { return tx.SuitesOf(suite.Environment) }), brief(first, second))
	same(t, "none of a kind", view(t, s, func(tx registry.Tx) ([]registry.SuiteVersion, error) { return tx.SuitesOf(suite.Rubric) }), []registry.SuiteVersion{})
	same(t, "suites held", view(t, s, func(tx registry.Tx) (bool, error) { return tx.HoldsSuites(suite.Environment) }), true)
	same(t, "the other kind", view(t, s, func(tx registry.Tx) (bool, error) { return tx.HoldsSuites(suite.Taskset) }), false)
	byManifest := func(d digest.Digest) func(registry.Tx) (registry.SuiteVersion, error) {
		return func(tx registry.Tx) (registry.SuiteVersion, error) { return tx.SuiteByManifest(webshop, d) }
	}
	same(t, "by manifest", view(t, s, byManifest(second.Manifest)), second)
	missing(t, s, "an unknown manifest", registry.NotFound, byManifest(sum("x")))
	update(t, s, func(tx registry.Tx) error { return tx.SetRepositoryAccess(webshop, true, nil) })
	same(t, "privacy", view(t, s, one("v1")).Private, true)

	again := suiteVersion("v1", 2)
	again.Key = "other"
	fails(t, s, "a version again", registry.Conflict, func(tx registry.Tx) error { return tx.InsertSuiteVersion(again) })
	equal := suiteVersion("V1", 2)
	equal.Key = first.Key
	fails(t, s, "an equal version", registry.Conflict, func(tx registry.Tx) error { return tx.InsertSuiteVersion(equal) })
	stray := suiteVersion("v9", 3)
	stray.Repository = "bob/environments/x"
	fails(t, s, "a version in no repository", registry.NameUnknown, func(tx registry.Tx) error { return tx.InsertSuiteVersion(stray) })

	rows := view(t, s, func(tx registry.Tx) ([]registry.LedgerRow, error) { return tx.Ledger(0, -1) })
	want := []registry.LedgerRow{first.LedgerRow(), second.LedgerRow()}
	want[0].Seq, want[1].Seq = 1, 2
	same(t, "the ledger", rows, want)
	same(t, "the ledger's name", rows[0].Name, "environments/Web-Shop")
}

// suiteFile makes a file of version v1 with every field set.
func suiteFile(version, name string, expires int) registry.SuiteFile {
	return registry.SuiteFile{Repository: webshop, Version: version, Name: name, Digest: sum(version + name), Size: 1 << 40, Account: "alice", ExpiresAt: at(expires)}
}

func testSuiteFiles(t *testing.T, s registry.MetaStore) {
	update(t, s, func(tx registry.Tx) error { return tx.EnsureRepository(repository(webshop)) })
	put := func(f registry.SuiteFile) func(registry.Tx) error {
		return func(tx registry.Tx) error { return tx.PutSuiteFile(f) }
	}
	a, b, c := suiteFile("v1", "a", 10), suiteFile("v1", "sub/b", 30), suiteFile("v2", "a", 10)
	old := a
	old.Digest, old.Size = sum("old"), 5
	for _, f := range []registry.SuiteFile{b, old, a, c} {
		update(t, s, put(f))
	}
	list := func(version string, limit int) []registry.SuiteFile {
		return view(t, s, func(tx registry.Tx) ([]registry.SuiteFile, error) { return tx.SuiteFiles(webshop, version, limit) })
	}
	same(t, "files by name, the last upload of each", list("v1", -1), []registry.SuiteFile{a, b})
	same(t, "the first file", list("v1", 1), []registry.SuiteFile{a})
	same(t, "the number", view(t, s, func(tx registry.Tx) (int, error) { return tx.SuiteFileCount(webshop, "v1") }), 2)
	file := func(name string) func(registry.Tx) (registry.SuiteFile, error) {
		return func(tx registry.Tx) (registry.SuiteFile, error) { return tx.SuiteFile(webshop, "v1", name) }
	}
	same(t, "a file", view(t, s, file("sub/b")), b)
	missing(t, s, "an unknown file", registry.NotFound, file("B"))
	stray := suiteFile("v1", "a", 1)
	stray.Repository = "bob/environments/x"
	fails(t, s, "a file of no repository", registry.NameUnknown, put(stray))

	forget := func(n int) {
		update(t, s, func(tx registry.Tx) error { return tx.ForgetSuiteFiles(at(n)) })
	}
	forget(9)
	same(t, "before anything expired", len(list("v1", -1))+len(list("v2", -1)), 3)
	forget(10)
	same(t, "a version for which something lives", list("v1", -1), []registry.SuiteFile{a, b})
	same(t, "a version that expired whole", list("v2", -1), []registry.SuiteFile{})
	forget(30)
	same(t, "when the last has expired", list("v1", -1), []registry.SuiteFile{})
	update(t, s, put(a))
	update(t, s, func(tx registry.Tx) error { return tx.DeleteSuiteFiles(webshop, "v1") })
	same(t, "after all were deleted", list("v1", -1), []registry.SuiteFile{})
}

// testSuiteLinks holds that the upload of a version that is not sealed keeps its bytes in the repository, and no longer.
func testSuiteLinks(t *testing.T, s registry.MetaStore) {
	f := suiteFile("v1", "a", 10)
	update(t, s, func(tx registry.Tx) error {
		if err := tx.EnsureRepository(repository(webshop)); err != nil {
			return err
		}
		if err := tx.LinkBlob(webshop, digest.Descriptor{MediaType: "m", Digest: f.Digest, Size: f.Size}, at(0)); err != nil {
			return err
		}
		return tx.PutSuiteFile(f)
	})
	unlink := func() (removed bool) {
		update(t, s, func(tx registry.Tx) (err error) {
			removed, err = tx.Unlink(webshop, f.Digest, at(100))
			return err
		})
		return removed
	}
	referenced := func() bool {
		return view(t, s, func(tx registry.Tx) (registry.Link, error) { return tx.Link(webshop, f.Digest) }).Referenced
	}
	same(t, "a file of an upload is referenced", referenced(), true)
	same(t, "a file of an upload is unlinked", unlink(), false)
	update(t, s, func(tx registry.Tx) error { return tx.ForgetSuiteFiles(at(10)) })
	same(t, "an expired file is referenced", referenced(), false)
	same(t, "an expired file is unlinked", unlink(), true)
}

func testRunners(t *testing.T, s registry.MetaStore) {
	update(t, s, func(tx registry.Tx) error { return tx.EnsureRepository(repository(webshop)) })
	runner := func(id string, n int) registry.Runner {
		return registry.Runner{ID: id, Repository: webshop, Address: "http://box:8080", Version: "v1", RunnerVersion: "0.4.0", CredentialHash: [32]byte{byte(n)},
			CreatedBy: "alice", CreatedAt: at(n), BeatAt: at(n)}
	}
	late, early := runner("er-a", 2), runner("er-b", 1)
	for _, r := range []registry.Runner{late, early} {
		update(t, s, func(tx registry.Tx) error { return tx.InsertRunner(r) })
	}
	list := func() []registry.Runner {
		return view(t, s, func(tx registry.Tx) ([]registry.Runner, error) { return tx.Runners(webshop) })
	}
	find := func(tx registry.Tx) (registry.Runner, error) { return tx.Runner("er-a") }
	same(t, "runners by time", list(), []registry.Runner{early, late})
	same(t, "a runner", view(t, s, find), late)
	fails(t, s, "a taken id", registry.Conflict, func(tx registry.Tx) error { return tx.InsertRunner(late) })
	stray := runner("er-c", 3)
	stray.Repository = "bob/environments/x"
	fails(t, s, "a runner of no repository", registry.NameUnknown, func(tx registry.Tx) error { return tx.InsertRunner(stray) })

	beat := func(id string) func(registry.Tx) error {
		return func(tx registry.Tx) error {
			return tx.BeatRunner(id, "http://other:1", "0.5.0", at(0).Add(time.Hour))
		}
	}
	update(t, s, beat("er-a"))
	late.Address, late.RunnerVersion, late.BeatAt = "http://other:1", "0.5.0", at(0).Add(time.Hour)
	same(t, "a runner that beat", view(t, s, find), late)
	fails(t, s, "a beat of nobody", registry.NotFound, beat("er-x"))
	remove := func(tx registry.Tx) error { return tx.DeleteRunner("er-a") }
	update(t, s, remove)
	fails(t, s, "a runner that is gone", registry.NotFound, remove)
	missing(t, s, "a runner that is gone", registry.NotFound, find)
	same(t, "the runners that are left", list(), []registry.Runner{early})
}
