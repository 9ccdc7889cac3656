package metatest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

var textTests = map[string]func(*testing.T, registry.MetaStore){
	"TextThatNobodyHolds": testUnholdableText,
	"AuditOfAnyText":      testAuditOfAnyText,
	"TextComparesBytes":   testTextComparesBytes,
	"TextIsKept":          testTextIsKept,
}

// unholdable are texts that not every engine can hold, so that none takes them.
var unholdable = []string{"\x00", "a\x00b", "\xff", "caf\xe9", "\xed\xa0\x80"}

// testUnholdableText checks that such a text is refused by a write, names nothing in a lookup, and breaks nothing else of
// its transaction.
func testUnholdableText(t *testing.T, s registry.MetaStore) {
	update(t, s, func(tx registry.Tx) error { return tx.EnsureRepository(repository("alice/x")) })
	for _, text := range unholdable {
		for what, write := range map[string]func(registry.Tx) error{
			"a setting's key":   put(text, "value"),
			"a setting's value": put("key", text),
			"an account's name": func(tx registry.Tx) error { return tx.InsertAccount(account(text)) },
			"a tag": func(tx registry.Tx) error {
				return tx.PutTag(registry.Tag{Repository: "alice/x", Name: text, Digest: sum("m")})
			},
			"a media type": func(tx registry.Tx) error {
				return tx.PutManifest(registry.Manifest{Repository: "alice/x", Digest: sum("m"), MediaType: text})
			},
		} {
			fails(t, s, fmt.Sprintf("%s %q", what, text), registry.Invalid, write)
		}
		missing(t, s, "setting", registry.NotFound, func(tx registry.Tx) (string, error) { return tx.Setting(text) })
		missing(t, s, "account", registry.NotFound, func(tx registry.Tx) (registry.Account, error) { return tx.Account(text) })
		missing(t, s, "repository", registry.NameUnknown, func(tx registry.Tx) (registry.Repository, error) { return tx.Repository(text) })
		missing(t, s, "tag", registry.ManifestUnknown, func(tx registry.Tx) (registry.Tag, error) { return tx.Tag("alice/x", text) })
		err := s.View(context.Background(), func(tx registry.Tx) error { _, err := tx.Tags("alice/x", text, 10); return err })
		if err != nil && registry.CodeOf(err) != registry.Invalid {
			t.Errorf("tags after %q: got error %v, want none or code Invalid", text, err)
		}
		update(t, s, func(tx registry.Tx) error {
			if err := tx.PutSetting(text, ""); registry.CodeOf(err) != registry.Invalid {
				return errors.Join(errors.New("want code Invalid"), err)
			}
			return tx.PutSetting("beside", "there")
		})
		present(t, s, "beside", "there")
	}
}

// testAuditOfAnyText checks that a request is audited whatever bytes it brought.
func testAuditOfAnyText(t *testing.T, s registry.MetaStore) {
	for _, text := range unholdable {
		update(t, s, func(tx registry.Tx) error {
			return tx.InsertAudit(registry.AuditRow{Account: text, Action: text, Subject: text, Outcome: text, Detail: "x" + text + "y"})
		})
	}
	rows := view(t, s, func(tx registry.Tx) ([]registry.AuditRow, error) { return tx.Audit(0, -1) })
	for i, want := range []string{"\uFFFD", "a\uFFFDb", "\uFFFD", "caf\uFFFD", "\uFFFD"} {
		if got := rows[i]; got.Subject != want || got.Account != want || got.Detail != "x"+want+"y" {
			t.Errorf("audited %q: got subject %q and detail %q, want %q inside", unholdable[i], got.Subject, got.Detail, want)
		}
	}
}

// testTextComparesBytes checks that lists and their pages are in the order of bytes, which no locale has.
func testTextComparesBytes(t *testing.T, s registry.MetaStore) {
	names := []string{"Z", "a", "_b", "a.b", "a-b", "a_b", "aB", "ab", "A", "aa", "é", "z", "a0", "a00", "B", "\U0001F642", "\uFFFD", "a b", "a/b"}
	update(t, s, func(tx registry.Tx) error {
		failed := tx.EnsureRepository(repository("r"))
		failed = errors.Join(failed, tx.PutManifest(registry.Manifest{Repository: "r", Digest: sum("m")}))
		for _, name := range names {
			failed = errors.Join(failed, tx.PutTag(registry.Tag{Repository: "r", Name: name, Digest: sum("m")}), tx.InsertAccount(account(name)),
				tx.EnsureRepository(repository(name)), tx.PutManifest(registry.Manifest{Repository: name, Digest: sum("m")}))
		}
		return failed
	})
	slices.Sort(names)
	tags := func(after string, limit int) []string {
		return view(t, s, func(tx registry.Tx) ([]string, error) { return tx.Tags("r", after, limit) })
	}
	same(t, "tags", tags("", -1), names)
	for i := range names {
		same(t, fmt.Sprintf("tags after %q", names[i]), tags(names[i], 3), names[i+1:min(i+4, len(names))])
	}
	var accounts []string
	for _, a := range view(t, s, func(tx registry.Tx) ([]registry.Account, error) { return tx.Accounts() }) {
		accounts = append(accounts, a.Name)
	}
	same(t, "accounts", accounts, names)
	repositories := append(slices.Clone(names), "r")
	slices.Sort(repositories)
	same(t, "repositories", view(t, s, func(tx registry.Tx) ([]string, error) { return tx.Repositories("", -1) }), repositories)
}

// testTextIsKept checks texts that are holdable though unusual, and long ones.
func testTextIsKept(t *testing.T, s registry.MetaStore) {
	long := slices.Repeat([]byte("é"), 1<<20)
	for i, text := range []string{"", " ", "\x01\x1f\x7f", "\r\n\t", "\u200b\u202e\ufeff", "e\u0301", "é", `\x41 \u0041 \N`, string(long)} {
		update(t, s, put(numbered("text", i), text))
		present(t, s, numbered("text", i), text)
	}
	update(t, s, func(tx registry.Tx) error {
		d := digest.Descriptor{Digest: sum("b"), MediaType: "application/é", Size: 1<<63 - 1}
		return errors.Join(tx.EnsureRepository(repository("alice/x")), tx.LinkBlob("alice/x", d, at(0)))
	})
	got := view(t, s, func(tx registry.Tx) (digest.Descriptor, error) { return tx.LinkedBlob("alice/x", sum("b")) })
	same(t, "the greatest size", got.Size, int64(1<<63-1))
}
