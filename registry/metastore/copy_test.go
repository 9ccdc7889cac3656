package metastore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// emptyPair opens an empty store of each engine.
func emptyPair(t *testing.T) (lite, pg *Store) {
	t.Helper()
	return openSQLite(t, filepath.Join(t.TempDir(), "gatehouse.db")), openPostgres(t, freshPostgres(t))
}

// TestSchemasAgree checks that the migrations of both engines make the same tables with the same columns, types, keys,
// references and indexes, and that PostgreSQL's text compares bytewise everywhere. A copy relies on all of it.
func TestSchemasAgree(t *testing.T) {
	t.Parallel()
	lite, pg := emptyPair(t)
	ours, err := lite.tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := pg.tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]*table{ours, theirs} {
		for _, described := range list {
			slices.Sort(described.parents)
		}
	}
	if diff := cmp.Diff(ours, theirs, cmp.AllowUnexported(table{})); diff != "" {
		t.Errorf("the tables differ (-sqlite +postgres):\n%s", diff)
	}
	pairs := func(s *Store, query string) (list []string) {
		t.Helper()
		err := s.View(t.Context(), func(r registry.Tx) (err error) {
			list, err = all(r.(*tx), text, query)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for _, test := range []struct{ what, lite, pg string }{
		{
			"types of columns",
			`SELECT m.name || '.' || c.name || ' ' || c.type || ' ' || (c."notnull" OR c.pk > 0) FROM sqlite_master m JOIN pragma_table_info(m.name) c
				WHERE m.type = 'table' AND m.name <> 'goose_db_version' AND m.name NOT LIKE 'sqlite%' ORDER BY 1`,
			`SELECT c.relname || '.' || a.attname || ' ' || CASE format_type(a.atttypid, NULL) WHEN 'text' THEN 'TEXT' WHEN 'bigint' THEN 'INTEGER' WHEN 'bytea' THEN 'BLOB' ELSE format_type(a.atttypid, NULL) END
				|| ' ' || CASE WHEN a.attnotnull THEN 1 ELSE 0 END
				FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
				WHERE c.relkind = 'r' AND c.relnamespace = CAST('public' AS regnamespace) AND c.relname <> 'goose_db_version' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1`,
		},
		{
			"named indexes",
			`SELECT tbl_name || ' ' || name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name <> 'goose_db_version' ORDER BY 1`,
			`SELECT c.relname || ' ' || x.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_class x ON x.oid = i.indexrelid
				WHERE c.relnamespace = CAST('public' AS regnamespace) AND c.relname <> 'goose_db_version'
				AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = x.oid) ORDER BY 1`,
		},
	} {
		want, got := pairs(lite, test.lite), pairs(pg, test.pg)
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s differ (-sqlite +postgres):\n%s", test.what, diff)
		}
	}
	loose := pairs(pg, `SELECT c.relname || '.' || a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relkind = 'r' AND c.relnamespace = CAST('public' AS regnamespace) AND c.relname <> 'goose_db_version'
		AND a.atttypid = CAST('text' AS regtype) AND a.attcollation <> CAST('"C"' AS regcollation)`)
	if len(loose) > 0 {
		t.Errorf("columns that don't say COLLATE \"C\": %v", loose)
	}
}

// fillRuns puts rows of every table about runs, nodes and revocations into a store.
func fillRuns(tx registry.Tx, owner string) error {
	pin := receipt.Pin{ID: owner + "/x", Version: "1", Kind: "algorithm", Content: digest.FromBytes(nil), Tree: digest.FromBytes([]byte("t")), Manifest: digest.FromBytes([]byte("m"))}
	job := registry.Job{ID: owner + "-job", Account: owner, Dialect: "forge", Pins: []receipt.Pin{pin, {ID: "c/s", Version: "1", Kind: "k", RuntimeSupplied: true, Content: digest.FromBytes(nil)}}}
	run := registry.Run{ID: owner + "-run", Job: job.ID, State: registry.RunStarted, Packs: job.Pins, ReceivedAt: time.Unix(1, 0), Started: []byte{}}
	node := registry.Node{Name: owner, Account: owner, CreatedAt: time.Unix(1, 1000)}
	failed := errors.Join(tx.InsertJob(job), tx.InsertRun(run), tx.InsertNode(node), tx.InsertNodeKey(registry.NodeKey{Node: owner, ID: "k", Public: []byte{0, 1}}))
	_, err := tx.InsertRevocation(registry.Revocation{Repository: owner + "/x", Version: "1", Reason: "é", At: time.Unix(1, 0)})
	return errors.Join(failed, err)
}

// fill puts rows into a store that meet the corners of a copy: references between tables, empty and missing bytes, text of
// many alphabets, numbers at their ends, rows that triggers count.
func fill(t *testing.T, s *Store, owner string) {
	t.Helper()
	repository := owner + "/x"
	err := s.Update(t.Context(), func(tx registry.Tx) error {
		failed := tx.InsertAccount(registry.Account{Name: owner, Role: "admin", Email: "é@x", CreatedAt: time.Unix(1, 5000).UTC(), MaxGPUs: 1<<31 - 1})
		failed = errors.Join(failed, tx.InsertToken(registry.Token{ID: owner, Account: owner, Hash: digestSum(owner)}))
		failed = errors.Join(failed, tx.EnsureRepository(registry.Repository{Name: repository, Owner: owner}))
		for i := range 300 {
			d := digest.FromBytes(fmt.Append(nil, i))
			failed = errors.Join(failed, tx.LinkBlob(repository, digest.Descriptor{Digest: d, Size: int64(i) << 40, MediaType: "x/y"}, time.Unix(1, 0)))
			m := registry.Manifest{Repository: repository, Digest: d, MediaType: "m", References: []digest.Digest{d, d}, Annotations: map[string]string{"a": "☃"}}
			if i%2 == 0 {
				m.Annotations, m.Subject = nil, digest.FromBytes([]byte("0"))
			}
			failed = errors.Join(failed, tx.PutManifest(m), tx.PutTag(registry.Tag{Repository: repository, Name: fmt.Sprint("Tag-", i), Digest: d}))
		}
		for i := range 20 {
			v := published(fmt.Sprint(i))
			v.Repository, v.Owner = repository, owner
			if i == 0 {
				v.Document, v.Catalogue = []byte{}, nil
			}
			failed = errors.Join(failed, tx.InsertVersion(v))
		}
		for key, value := range map[string]string{"a": "", "B": "\u00e9\U0001F642", "é": "x", "Z": "\x01\x7f"} {
			failed = errors.Join(failed, tx.PutSetting(owner+key, value))
		}
		failed = errors.Join(failed, fillRuns(tx, owner))
		for i := range 700 {
			failed = errors.Join(failed, tx.InsertAudit(registry.AuditRow{At: time.Unix(int64(i), 0), Account: owner, Detail: fmt.Sprint(i)}))
		}
		return failed
	})
	if err != nil {
		t.Fatal(err)
	}
}

func digestSum(text string) (sum [32]byte) {
	copy(sum[:], text)
	return sum
}

// dump lists every row of every table but the ledger's, to compare stores without the code of a copy.
func dump(t *testing.T, s *Store) map[string][]string {
	t.Helper()
	tables, err := s.tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	content := map[string][]string{}
	for _, described := range tables {
		err := s.View(t.Context(), func(r registry.Tx) error {
			for row, err := range r.(*tx).rows(described.selectRows()) {
				if err != nil {
					return err
				}
				content[described.name] = append(content[described.name], fmt.Sprintf("%#v", row))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(content[described.name])
	}
	return content
}

// mustCopy copies, and gives how many rows the last pass saw by table.
func mustCopy(t *testing.T, from, to *Store) map[string]int {
	t.Helper()
	seen := map[string]int{}
	if err := Copy(t.Context(), from, to, func(table string, rows int) { seen[table] = rows }); err != nil {
		t.Fatalf("copy: %v", err)
	}
	if diff := cmp.Diff(dump(t, from), dump(t, to)); diff != "" {
		t.Fatalf("the copy differs (-source +target):\n%s", diff)
	}
	return seen
}

// TestCopy copies in a circle through both engines, with changes and removals between.
func TestCopy(t *testing.T) {
	t.Parallel()
	lite, pg := emptyPair(t)
	fill(t, lite, "alice")
	seen := mustCopy(t, lite, pg)
	if seen["tags"] != 300 || seen["audit"] != 700 || seen["ledger"] != 20 || seen["manifest_references"] != 600 {
		t.Errorf("the copy saw %v", seen)
	}
	// What is there already is left alone: the second copy may write nothing.
	if err := pg.Update(t.Context(), raw(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''written''; END';
		CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON tags FOR EACH ROW EXECUTE FUNCTION refuse();
		CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON versions FOR EACH ROW EXECUTE FUNCTION refuse()`)); err != nil {
		t.Fatal(err)
	}
	mustCopy(t, lite, pg)
	if err := pg.Update(t.Context(), raw(`DROP TRIGGER refuse ON tags; DROP TRIGGER refuse ON versions; DROP FUNCTION refuse()`)); err != nil {
		t.Fatal(err)
	}

	err := lite.Update(t.Context(), func(tx registry.Tx) error {
		first := digest.FromBytes([]byte("1"))
		return errors.Join(
			tx.DeleteManifest("alice/x", first),
			tx.DeleteTag("alice/x", "Tag-7"),
			tx.PutTag(registry.Tag{Repository: "alice/x", Name: "Tag-8", Digest: digest.FromBytes([]byte("9"))}),
			tx.UnlinkBlob("alice/x", first),
			tx.PutSetting("alicea", "changed"),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, lite, "bob")
	mustCopy(t, lite, pg)

	// Back into another SQLite, and what the target alone has goes.
	other := openSQLite(t, filepath.Join(t.TempDir(), "gatehouse.db"))
	if err := other.Update(t.Context(), func(tx registry.Tx) error {
		return errors.Join(tx.InsertAccount(registry.Account{Name: "mallory", Role: "viewer"}), tx.PutSetting("only here", ""),
			tx.EnsureRepository(registry.Repository{Name: "mallory/x", Owner: "mallory"}))
	}); err != nil {
		t.Fatal(err)
	}
	mustCopy(t, pg, other)

	// The copy works on: numbers go on where they were.
	if err := pg.Update(t.Context(), func(tx registry.Tx) error {
		v := published("next")
		v.Repository = "alice/x"
		return errors.Join(tx.InsertVersion(v), tx.InsertAudit(registry.AuditRow{Detail: "next"}))
	}); err != nil {
		t.Fatal(err)
	}
	if rows := ledgerOf(t, pg); rows[len(rows)-1].Seq != 41 {
		t.Errorf("the next row of the ledger has the number %d, want 41", rows[len(rows)-1].Seq)
	}
}

// TestCopyOfLedger checks that a copy neither removes nor changes a row of a ledger.
func TestCopyOfLedger(t *testing.T) {
	t.Parallel()
	lite, pg := emptyPair(t)
	publish := func(s *Store, name, manifest string) {
		t.Helper()
		err := s.Update(t.Context(), func(tx registry.Tx) error {
			v := published(name)
			v.Manifest = digest.FromBytes([]byte(manifest))
			return errors.Join(repositoryOfPack(tx), tx.InsertVersion(v))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	publish(lite, "1", "1")
	mustCopy(t, lite, pg)
	publish(pg, "2", "2")
	if err := Copy(t.Context(), lite, pg, nil); err != nil {
		t.Fatalf("copy over a longer ledger: %v", err)
	}
	rows := ledgerOf(t, pg)
	if len(rows) != 2 || rows[1].Version != "2" {
		t.Errorf("the longer ledger is now %v", rows)
	}
	publish(lite, "2", "other bytes")
	if err := Copy(t.Context(), lite, pg, nil); registry.CodeOf(err) != registry.Conflict || !strings.Contains(fmt.Sprint(err), "ledger") {
		t.Errorf("copy between ledgers that disagree: got error %v, want code Conflict and a word of the ledger", err)
	}
}

// TestCopyIsResumed cuts a copy off after each of its first steps and lets the next one go on.
func TestCopyIsResumed(t *testing.T) {
	t.Parallel()
	lite, pg := emptyPair(t)
	fill(t, lite, "alice")
	if err := registry.SetReadOnly(t.Context(), pg, "not whole"); err != nil {
		t.Fatal(err)
	}
	for cut := range 25 {
		ctx, cancel := context.WithCancel(t.Context())
		steps := 0
		err := Copy(ctx, lite, pg, func(string, int) {
			if steps++; steps > cut {
				cancel()
			}
		})
		cancel()
		if !errors.Is(err, context.Canceled) && (err != nil || steps > cut) {
			t.Fatalf("copy that is cut off: %v", err)
		}
		if reason, err := registry.ReadOnly(t.Context(), pg); err != nil || reason != "not whole" {
			t.Fatalf("after a copy that is cut off the target takes changes: %q, %v", reason, err)
		}
	}
	mustCopy(t, lite, pg)
}

// TestCopyOfWhatCannotBeHeld checks the message for text that an older store may hold.
func TestCopyOfWhatCannotBeHeld(t *testing.T) {
	t.Parallel()
	lite, pg := emptyPair(t)
	if _, err := lite.writer.db.Exec(`INSERT INTO settings (key, value) VALUES ('k', CAST(x'610062' AS TEXT))`); err != nil {
		t.Fatal(err)
	}
	if err := Copy(t.Context(), lite, pg, nil); registry.CodeOf(err) != registry.Invalid || !strings.Contains(fmt.Sprint(err), "settings") {
		t.Errorf("got error %v, want code Invalid and the table's name", err)
	}
}
