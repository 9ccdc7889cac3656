package metastore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// listening is a driver.Connector whose connections note the queries that they are asked.
type listening struct {
	driver.Connector
	heard *[]heardQuery
}

type heardQuery struct {
	text string
	args []any
}

func (l listening) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := l.Connector.Connect(ctx)
	return listeningConn{conn, l.heard}, err
}

type listeningConn struct {
	driver.Conn
	heard *[]heardQuery
}

func (c listeningConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
}

func (c listeningConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c listeningConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	heard := heardQuery{text: query}
	for _, a := range args {
		heard.args = append(heard.args, a.Value)
	}
	*c.heard = append(*c.heard, heard)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

// numberedDigest is what digestSQL gives for i.
func numberedDigest(i int) digest.Digest {
	d, err := digest.Parse("sha256:" + strings.Repeat(fmt.Sprint(1_000_000_000_000_000+i), 4))
	if err != nil {
		panic(err)
	}
	return d
}

// digestSQL makes the text of a digest of its own out of an expression of an integer.
func digestSQL(i string) string {
	text := `CAST(1000000000000000 + ` + i + ` AS TEXT)`
	return `'sha256:' || ` + strings.Join([]string{text, text, text, text}, ` || `)
}

// fillMany makes 20,000 tags with a manifest each in a/x, all referrers of one of 100 subjects, 300 other repositories with
// two manifests each, 20,000 recipe packs on the shelf, and 20,000 jobs of alice, whose leases end one after another, with a
// hand-over and a pinned pack each, 20,000 runs of twenty of them, and as many revocations and nodes.
func fillMany(t *testing.T, s *Store) {
	t.Helper()
	const step = 1000 // rows of a transaction
	for _, rows := range []struct {
		n            int
		into, values string
	}{
		{1, `repositories (name, owner, pack_name, pack_fold, pack_kind, created_at)`, `'a/x', 'a', '', '', '', 0`},
		{300, `repositories (name, owner, pack_name, pack_fold, pack_kind, created_at)`, `'b/' || CAST(1000 + i AS TEXT), 'b', '', '', '', 0`},
		{20_000, `manifests (repository, digest, media_type, size, artifact_type, subject, pushed_at)`,
			`'a/x', ` + digestSQL("i") + `, 'm', 1, 'application/t', ` + digestSQL("i % 100") + `, i`},
		{600, `manifests (repository, digest, media_type, size, artifact_type, subject, pushed_at)`,
			`'b/' || CAST(1000 + i % 300 AS TEXT), ` + digestSQL("i") + `, 'm', 1, '', '', i`},
		{20_000, `tags (repository, name, digest, updated_at)`, `'a/x', 'v' || CAST(i AS TEXT), ` + digestSQL("i") + `, i`},
		{20_000, `manifest_references (repository, manifest, position, digest)`, `'a/x', ` + digestSQL("i") + `, 0, ` + digestSQL("i % 1000")},
		{20_000, `repository_blobs (repository, digest, media_type, size, linked_at)`, `'a/x', ` + digestSQL("i") + `, '', 1, 0`},
		{20_000, `repositories (name, owner, pack_name, pack_fold, pack_kind, created_at)`, `'s/' || CAST(i AS TEXT), 's', 'r' || CAST(i AS TEXT), 'r' || CAST(i AS TEXT), 'recipe', 0`},
		{20_000, `ledger (seq, repository, key, owner, name, version, dialect, kind, manifest, content, tree, created_by, created_at)`,
			`1000 + i, 's/' || CAST(i AS TEXT), '1', 's', 'r' || CAST(i AS TEXT), '1', 'forge', 'recipe', '', '', '', 's', 0`},
		{20_000, `versions (repository, version, key, seq, owner, pack_name, dialect, kind, manifest, content, tree, layer_media_type, layer_digest, layer_size,
			config_media_type, config_digest, config_size, summary, enabled, created_by, created_at, files, bytes)`,
			`'s/' || CAST(i AS TEXT), '1', '1', 1000 + i, 's', 'r' || CAST(i AS TEXT), 'forge', 'recipe', ` + digestSQL("i") + `, '', '', '', '', 1, '', '', 1, '', 1, 's', 0, 1, 1`},
		{20_000, `shelf (dialect, repository, version, owner, pack_name, kind, content, tree, recipe, alias, recipe_version, recipe_digest)`,
			`'forge', 's/' || CAST(i AS TEXT), '1', 's', 'r' || CAST(i AS TEXT), 'recipe', '', '', 'trl/r' || CAST(i AS TEXT), 'trl/s.r' || CAST(i AS TEXT), '1', ` + digestSQL("i")},
		{20_000, `client_ids (dialect, kind, fold, id, pack, alias)`,
			`'forge', 'recipe', 'trl/r' || CAST(i AS TEXT), 'trl/r' || CAST(i AS TEXT), 's/r' || CAST(i AS TEXT), 0`},
		{1, `accounts (name, role, email, password_hash, disabled, max_gpus, created_at)`, `'alice', 'operator', '', '', 0, 0, 0`},
		{20_000, `jobs (id, account, dialect, exp, name, project, status, gpus, spec_digest, package_media_type, package_digest, package_size, key, submitted_at, lease_until)`,
			`'run-' || CAST(i AS TEXT), 'alice', 'forge', 'e', 'n', '', 'admitted', 8, '', '', '', 0, 'k' || CAST(i AS TEXT), i, i`},
		{20_000, `handovers (id, job, target, event, state, tries, created_at, since, due_at, holder, lease_until, last_error, ended_at)`,
			`'run-' || CAST(i AS TEXT) || '.admitted.t', 'run-' || CAST(i AS TEXT), 't', 'job.admitted', CASE WHEN i % 2 = 0 THEN 'pending' ELSE 'delivered' END, 0, i, i, i, '', 0, '', 0`},
		{20_000, `job_packs (job, position, pack, version, kind, content, tree, manifest, runtime_supplied, open)`,
			`'run-' || CAST(i AS TEXT), 0, 's/r' || CAST(i % 100 AS TEXT), '1', 'recipe', ` + digestSQL("i % 100") + `, ` + digestSQL("i % 100") + `, ` + digestSQL("i % 100") + `, 0, CASE WHEN i < 19000 THEN 0 ELSE 1 END`},
		{20_000, `runs (id, job, account, node, sender, state, attested, key, mode, exit_code, started_at, ended_at, received_at, changed_at)`,
			`'r' || CAST(100000 + i AS TEXT), 'run-' || CAST(i % 20 AS TEXT), 'alice', 'n' || CAST(i % 50 AS TEXT), 's', CASE WHEN i < 19000 THEN 'ended' ELSE 'started' END, 1, 'k', 'root', 0, i, i, i, i`},
		{20_000, `run_packs (run, position, pack, version, kind, content, tree, manifest, runtime_supplied, at, open)`,
			`'r' || CAST(100000 + i AS TEXT), 0, 's/r' || CAST(i % 100 AS TEXT), '1', 'recipe', ` + digestSQL("i % 100") + `, ` + digestSQL("i % 100") + `, ` + digestSQL("i % 100") + `, 0, i, CASE WHEN i < 19000 THEN 0 ELSE 1 END`},
		{20_000, `run_digests (digest, run, at)`, digestSQL("i % 100") + `, 'r' || CAST(100000 + i AS TEXT), i`},
		{20_000, `revocations (seq, repository, pack, version, content, tree, manifest, layer, reason, revoked_by, at)`,
			`1 + i, 's/' || CAST(i AS TEXT), 's/r' || CAST(i AS TEXT), '1', ` + digestSQL("i") + `, ` + digestSQL("i") + `, ` + digestSQL("i") + `, ` + digestSQL("i") + `, 'why', 'admin', i`},
		{20_000, `accounts (name, role, email, password_hash, disabled, max_gpus, created_at)`, `'node/n' || CAST(i AS TEXT), 'viewer', '', '', 0, 0, 0`},
		{20_000, `nodes (name, account, created_by, created_at, removed_at)`, `'n' || CAST(i AS TEXT), 'node/n' || CAST(i AS TEXT), 'admin', 0, 0`},
	} {
		for first := 0; first < rows.n; first += step {
			insert := fmt.Sprintf(`INSERT INTO %s WITH RECURSIVE n(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT %s FROM n`,
				rows.into, first, min(first+step, rows.n)-1, rows.values)
			if err := s.Update(t.Context(), raw(insert)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// hotLookups are what requests ask for that must not grow with the number of tags, versions or jobs.
var hotLookups = map[string]func(registry.Tx) error{
	"a tag":          func(t registry.Tx) error { _, err := t.Tag("a/x", "v12345"); return err },
	"a page of tags": func(t registry.Tx) error { _, err := t.Tags("a/x", "v12", 100); return err },
	"last versions":  func(t registry.Tx) error { _, err := t.LastVersions("s/12345", 20); return err },
	"a manifest":     func(t registry.Tx) error { _, err := t.Manifest("a/x", numberedDigest(12345)); return err },
	"a manifest by tag": func(t registry.Tx) error {
		_, err := t.FindManifest("a/x", registry.Reference{Tag: "v12345"})
		return err
	},
	"a manifest by digest": func(t registry.Tx) error {
		_, err := t.FindManifest("a/x", registry.Reference{Digest: numberedDigest(12345)})
		return err
	},
	"referrers": func(t registry.Tx) error {
		return t.Referrers("a/x", numberedDigest(7), "", digest.Digest{}, func(registry.Manifest) bool { return false })
	},
	"referrers of a type": func(t registry.Tx) error {
		return t.Referrers("a/x", numberedDigest(7), "application/t", numberedDigest(9), func(registry.Manifest) bool { return false })
	},
	"a linked blob":            func(t registry.Tx) error { _, err := t.LinkedBlob("a/x", numberedDigest(7)); return err },
	"repositories of a blob":   func(t registry.Tx) error { _, err := t.BlobRepositories(numberedDigest(7)); return err },
	"references to a blob":     func(t registry.Tx) error { _, err := t.BlobReferences("a/x", numberedDigest(7)); return err },
	"a repository":             func(t registry.Tx) error { _, err := t.Repository("a/x"); return err },
	"a page of the catalogue":  func(t registry.Tx) error { _, err := t.Repositories("b/1", 100); return err },
	"a stamp of the catalogue": func(t registry.Tx) error { _, err := t.CatalogueStamp("forge", registry.ShelfPart); return err },
	"a pack on the shelf":      func(t registry.Tx) error { _, err := t.Shelved("forge", "s/12345"); return err },
	"a recipe by its id or alias": func(t registry.Tx) error {
		for _, id := range []string{"trl/r12345", "trl/s.r12345"} {
			if found, err := t.ShelvedRecipe("forge", id); err != nil || len(found) != 1 {
				return fmt.Errorf("%s: %d found (%w)", id, len(found), err)
			}
		}
		return nil
	},
	"recipes of a framework": func(t registry.Tx) error { _, err := t.ShelvedNames("forge", "trl/", 100); return err },
	"who has an id":          func(t registry.Tx) error { _, err := t.ClientIDHolder("forge", "recipe", "trl/R12345"); return err },
	"an account":             func(t registry.Tx) error { _, err := t.Account("alice"); return err },
	"a version":              func(t registry.Tx) error { _, err := t.Version("s/12345", "1"); return err },
	"what jobs hold": func(t registry.Tx) error {
		held, err := t.Leased("alice", time.UnixMicro(19_989))
		if err == nil && held != (registry.Leased{Jobs: 10, GPUs: 80}) {
			err = fmt.Errorf("held: %+v", held)
		}
		return err
	},
	"a job":            func(t registry.Tx) error { _, err := t.Job("run-12345"); return err },
	"a job by its key": func(t registry.Tx) error { _, err := t.JobByKey("alice", "k12345"); return err },
	"what is to be handed over": func(t registry.Tx) error {
		due, err := t.DueHandovers("t", time.UnixMicro(20_000), 16)
		if err == nil && len(due) != 16 {
			err = fmt.Errorf("%d rows are due", len(due))
		}
		return err
	},
	"a hand-over": func(t registry.Tx) error { _, err := t.Handover("run-12345.admitted.t"); return err },
	"a page of jobs of an account": func(t registry.Tx) error {
		_, err := t.FindJobs(registry.JobFilter{Account: "alice", Limit: 50})
		return err
	},
	"the page behind": func(t registry.Tx) error {
		_, err := t.FindJobs(registry.JobFilter{Account: "alice", Before: "run-12345", Limit: 50})
		return err
	},
	"runs of a version":       runsOf(registry.RunFilter{Pack: "s/r7", Version: "1", Limit: 50}, 50),
	"the page of them behind": runsOf(registry.RunFilter{Pack: "s/r7", Version: "1", Before: "r110007", Limit: 50}, 50),
	"runs of a digest":        runsOf(registry.RunFilter{Digest: numberedDigest(7), Limit: 50}, 50),
	"that page behind":        runsOf(registry.RunFilter{Digest: numberedDigest(7), Before: "r110007", Limit: 50}, 50),
	"runs of a job":           runsOf(registry.RunFilter{Job: "run-7", Limit: 50}, 50),
	"runs on a node":          runsOf(registry.RunFilter{Node: "n7", Limit: 50}, 50),
	"runs of an account":      runsOf(registry.RunFilter{Account: "alice", Before: "r110007", Limit: 50}, 50),
	"own runs of a version":   runsOf(registry.RunFilter{Pack: "s/r7", Version: "1", Account: "bob", Limit: 50}, 0),
	"own runs of a digest":    runsOf(registry.RunFilter{Digest: numberedDigest(7), Account: "bob", Limit: 50}, 0),
	"runs in a state":         runsOf(registry.RunFilter{State: registry.RunStarted, Limit: 50}, 50),
	"a run":                   func(t registry.Tx) error { _, err := t.Run("r112345"); return err },
	"what a job ran":          func(t registry.Tx) error { _, err := t.JobRuns("run-7"); return err },
	"what uses a version": func(t registry.Tx) error {
		use, err := t.PackUse("s/r7", "1", time.UnixMicro(19_500), time.UnixMicro(19_500))
		if err == nil && (use.Runs != 200 || use.QueuedJobs+use.SilentJobs != 10 || use.ActiveRuns+use.SilentRuns != 10) {
			err = fmt.Errorf("use: %+v", use)
		}
		return err
	},
	"the last revocation":         func(t registry.Tx) error { _, err := t.LastRevocation(); return err },
	"a revoked tree":              func(t registry.Tx) error { _, err := t.RevocationByTree(numberedDigest(7)); return err },
	"a blob that may be withheld": func(t registry.Tx) error { _, err := t.HeldBlob("a/x", numberedDigest(7)); return err },
	"a node":                      func(t registry.Tx) error { _, err := t.Node("n12345"); return err },
	"a preview":                   func(t registry.Tx) error { _, err := t.Preview("p"); return notThere(err) },
	"an environment": func(t registry.Tx) error {
		_, err := t.SuiteVersion("a/x", "1")
		return notThere(err)
	},
	"a repository's visibility": func(t registry.Tx) error { _, err := t.RepositoryVisible("a/x"); return err },
}

// runsOf asks for a page of runs, which must have n.
func runsOf(f registry.RunFilter, n int) func(registry.Tx) error {
	return func(t registry.Tx) error {
		runs, err := t.Runs(f)
		if err == nil && len(runs) != n {
			err = fmt.Errorf("%d runs", len(runs))
		}
		return err
	}
}

// notThere lets a lookup find nothing.
func notThere(err error) error {
	if registry.CodeOf(err) == registry.NotFound {
		return nil
	}
	return err
}

// TestPlans checks, with 20,000 tags, that every hot lookup walks an index and sorts nothing, whether the engine has
// statistics of the tables or not, and in PostgreSQL also once it plans for any arguments.
func TestPlans(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "gatehouse.db")
		s := openSQLite(t, path)
		connector, err := sqlite.NewConnector("file:" + path)
		if err != nil {
			t.Fatal(err)
		}
		checkPlans(t, s, connector, sqlitePlan, `PRAGMA analysis_limit = 0`, `ANALYZE`)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		address := freshPostgres(t)
		config, _, err := postgresConfig(address)
		if err != nil {
			t.Fatal(err)
		}
		plan := func(mode string) planner {
			return func(s *Store, q heardQuery) (string, error) { return postgresPlan(s, q, mode) }
		}
		s := openPostgres(t, address)
		// Statistics that the server takes by itself in the middle of the filling would be of tables that hold one repository.
		if _, err := s.writer.db.Exec(`DO $$ DECLARE t text; BEGIN FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema()
			LOOP EXECUTE format('ALTER TABLE %I SET (autovacuum_enabled = false)', t); END LOOP; END $$`); err != nil {
			t.Fatal(err)
		}
		connector := stdlib.GetConnector(*config)
		checkPlans(t, s, connector, plan("force_custom_plan"), `ANALYZE`)
		for name, queries := range hearAll(t, s, connector) {
			checkPlan(t, s, name+" for any arguments", queries, plan("force_generic_plan"))
		}
	})
}

// planner gives an engine's plan of a query, one step a line, with a line "bad: …" for each step that it should not have.
type planner func(*Store, heardQuery) (string, error)

func checkPlans(t *testing.T, s *Store, connector driver.Connector, plan planner, analyze ...string) {
	t.Helper()
	fillMany(t, s)
	for name, queries := range hearAll(t, s, connector) {
		checkPlan(t, s, name, queries, plan)
	}
	for _, statement := range analyze {
		if _, err := s.writer.db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	for name, queries := range hearAll(t, s, connector) {
		checkPlan(t, s, name+" with statistics", queries, plan)
	}
}

// hearAll runs the lookups and gives the queries that each of them asked.
func hearAll(t *testing.T, s *Store, connector driver.Connector) map[string][]heardQuery {
	t.Helper()
	var heard []heardQuery
	ears := &Store{engine: s.engine, readers: sql.OpenDB(listening{connector, &heard})}
	defer ears.readers.Close()
	queries := map[string][]heardQuery{}
	for name, lookup := range hotLookups {
		heard = nil
		if err := ears.View(t.Context(), lookup); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(heard) == 0 {
			t.Errorf("%s asked nothing", name)
		}
		queries[name] = heard
	}
	return queries
}

func checkPlan(t *testing.T, s *Store, name string, queries []heardQuery, plan planner) {
	t.Helper()
	for _, q := range queries {
		steps, err := plan(s, q)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		// Who asks for runs of their own has their own looked at, however many there are of the pack.
		others := strings.HasPrefix(name, "own runs") && !strings.Contains(name, "any arguments") && strings.Contains(q.text, "r.account") && !strings.Contains(steps, "runs_of_account")
		if steps == "" || others || strings.Contains(steps, "bad: ") {
			t.Errorf("%s: the query\n%s\nhas the plan\n%s", name, q.text, steps)
		}
	}
}

func sqlitePlan(s *Store, q heardQuery) (string, error) {
	rows, err := s.writer.db.Query(`EXPLAIN QUERY PLAN `+q.text, q.args...)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			return "", err
		}
		if strings.HasPrefix(step, "SCAN ") && step != "SCAN CONSTANT ROW" || strings.Contains(step, "TEMP B-TREE") && !strings.Contains(step, "count(DISTINCT)") {
			plan.WriteString("bad: ")
		}
		plan.WriteString(step + "\n")
	}
	return plan.String(), rows.Err()
}

func postgresPlan(s *Store, q heardQuery, mode string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := s.readers.Conn(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	var values []string
	for _, a := range q.args {
		if text, ok := a.(string); ok {
			values = append(values, `'`+strings.ReplaceAll(text, `'`, `''`)+`'`)
		} else {
			values = append(values, fmt.Sprint(a))
		}
	}
	for _, statement := range []string{`SET plan_cache_mode = ` + mode, `PREPARE q AS ` + q.text} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return "", err
		}
	}
	defer conn.ExecContext(ctx, `DEALLOCATE q`)
	rows, err := conn.QueryContext(ctx, `EXPLAIN EXECUTE q(`+strings.Join(values, ", ")+`)`)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var step string
		if err := rows.Scan(&step); err != nil {
			return "", err
		}
		if strings.Contains(step, "Seq Scan") || strings.Contains(step, "Sort  (") {
			plan.WriteString("bad: ")
		}
		plan.WriteString(step + "\n")
	}
	return plan.String(), rows.Err()
}
