package metastore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// table is what a copy has to know of a table. It is read from the database, so that a table of a new migration needs
// nothing here.
type table struct {
	name    string
	columns []string
	key     []int    // the columns of the primary key, in its order
	parents []string // the tables that its rows name
	grows   bool     // whether rows are never changed and never removed
	own     string   // condition of the rows that belong to the registry; others are the store's own, and not copied
}

// catalog are an engine's queries about its own tables. goose's table is no part of what is copied.
type catalog struct {
	tables  string // names, sorted
	columns string // name and place in the primary key, from 1, 0 outside it; in the table's order
	parents string // names of the tables that foreign keys name
}

var sqliteCatalog = catalog{
	tables:  `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name <> 'goose_db_version' ORDER BY name`,
	columns: `SELECT name, pk FROM pragma_table_info($1) ORDER BY cid`,
	parents: `SELECT DISTINCT "table" FROM pragma_foreign_key_list($1)`,
}

var postgresCatalog = catalog{
	tables: `SELECT CAST(relname AS TEXT) COLLATE "C" AS name FROM pg_class
		WHERE relkind = 'r' AND relnamespace = CAST(current_schema() AS regnamespace) AND relname <> 'goose_db_version' ORDER BY 1`,
	columns: `SELECT CAST(a.attname AS TEXT), COALESCE((SELECT k.place FROM pg_index i, unnest(i.indkey) WITH ORDINALITY AS k(number, place)
			WHERE i.indrelid = a.attrelid AND i.indisprimary AND k.number = a.attnum), 0)
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
		WHERE c.relname = $1 AND c.relnamespace = CAST(current_schema() AS regnamespace) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`,
	parents: `SELECT DISTINCT CAST(parent.relname AS TEXT) FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class parent ON parent.oid = k.confrelid
		WHERE k.contype = 'f' AND c.relname = $1 AND c.relnamespace = CAST(current_schema() AS regnamespace)`,
}

// tables describes every table, those that are named before those that name them.
func (s *Store) tables(ctx context.Context) (list []*table, err error) {
	err = s.View(ctx, func(r registry.Tx) error {
		t := r.(*tx)
		names, err := all(t, text, s.engine.catalog.tables)
		if err != nil {
			return err
		}
		list = nil
		for _, name := range names {
			described, err := t.describe(name)
			if err != nil {
				return fmt.Errorf("table %s: %w", name, err)
			}
			list = append(list, described)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return parentsFirst(list)
}

// describe reads what the catalog says of one table.
func (t *tx) describe(name string) (*table, error) {
	described := &table{name: name, grows: name == "ledger", own: "true"}
	if name == "settings" { // a store that is being filled takes no changes, whatever holds of the other
		described.own = "key <> '" + registry.ReadOnlySetting + "'"
	}
	type column struct {
		name  string
		place int
	}
	columns, err := all(t, func(r row) (c column, err error) {
		err = r.Scan(&c.name, &c.place)
		return c, err
	}, t.engine.catalog.columns, name)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(columns, func(a, b column) int { return strings.Compare(a.name, b.name) })
	places := map[int]int{}
	for i, c := range columns {
		described.columns = append(described.columns, c.name)
		if c.place > 0 {
			places[c.place] = i
		}
	}
	for place := 1; place <= len(places); place++ {
		described.key = append(described.key, places[place])
	}
	if len(described.key) == 0 {
		return nil, errors.New("it has no primary key")
	}
	described.parents, err = all(t, text, t.engine.catalog.parents, name)
	return described, err
}

// parentsFirst sorts tables so that a row is written after those that it names.
func parentsFirst(list []*table) ([]*table, error) {
	var sorted []*table
	placed := map[string]bool{}
	for len(sorted) < len(list) {
		before := len(sorted)
		for _, t := range list {
			ready := !slices.ContainsFunc(t.parents, func(parent string) bool { return parent != t.name && !placed[parent] })
			if ready && !placed[t.name] {
				placed[t.name] = true
				sorted = append(sorted, t)
			}
		}
		if len(sorted) == before {
			return nil, errors.New("the tables' foreign keys name each other in a circle")
		}
	}
	return sorted, nil
}

// commonTables describes the tables of two stores, which must have the same ones. Errors: Unsupported.
func commonTables(ctx context.Context, from, to *Store) ([]*table, error) {
	source, err := from.tables(ctx)
	if err != nil {
		return nil, err
	}
	target, err := to.tables(ctx)
	if err != nil {
		return nil, err
	}
	shape := func(list []*table) (names []string) {
		for _, t := range list {
			names = append(names, fmt.Sprintf("%s %v %v", t.name, t.columns, t.key))
		}
		slices.Sort(names)
		return names
	}
	if ours, theirs := shape(source), shape(target); !slices.Equal(ours, theirs) {
		return nil, registry.Errorf(registry.Unsupported, "the stores have different schemas: open both with the same program\nsource: %s\ntarget: %s",
			strings.Join(ours, "; "), strings.Join(theirs, "; "))
	}
	return source, nil
}

// keyColumns names the columns of the primary key.
func (t *table) keyColumns() (names []string) {
	for _, i := range t.key {
		names = append(names, t.columns[i])
	}
	return names
}

// keyOf gives the values of the primary key out of a whole row.
func (t *table) keyOf(row []any) (values []any) {
	for _, i := range t.key {
		values = append(values, row[i])
	}
	return values
}

// compareKeys orders whole rows by their primary keys.
func (t *table) compareKeys(a, b []any) int {
	for _, i := range t.key {
		if order := compareValues(a[i], b[i]); order != 0 {
			return order
		}
	}
	return 0
}

// selectRows is the query of all rows, in the order of the primary key, with the number of its columns.
func (t *table) selectRows() (string, int) {
	return `SELECT ` + quoted(t.columns) + ` FROM ` + t.name + ` WHERE ` + t.own + ` ORDER BY ` + quoted(t.keyColumns()), len(t.columns)
}

// selectKeys is the query of all primary keys, in their order, with the number of its columns.
func (t *table) selectKeys() (string, int) {
	keys := t.keyColumns()
	return `SELECT ` + quoted(keys) + ` FROM ` + t.name + ` WHERE ` + t.own + ` ORDER BY ` + quoted(keys), len(keys)
}

// quoted lists names of columns.
func quoted(names []string) string { return `"` + strings.Join(names, `", "`) + `"` }

// deleteRows removes the rows with the keys.
func (t *table) deleteRows(tx *tx, keys [][]any) error {
	var conditions []string
	for i, column := range t.keyColumns() {
		conditions = append(conditions, fmt.Sprintf(`"%s" = $%d`, column, i+1))
	}
	for _, key := range keys {
		if _, err := tx.exec(`DELETE FROM `+t.name+` WHERE `+strings.Join(conditions, " AND "), key...); err != nil {
			return err
		}
	}
	return nil
}

// upsertRows adds the rows, or changes those whose keys are there, many in a statement. There are few sizes of statements,
// so that they stay prepared.
func (t *table) upsertRows(tx *tx, rows [][]any) error {
	for len(rows) > 0 {
		n := 1
		for _, size := range []int{64, 8} {
			if len(rows) >= size {
				n = size
				break
			}
		}
		if _, err := tx.exec(t.upsert(n), slices.Concat(rows[:n]...)...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// upsert is the statement that writes n rows.
func (t *table) upsert(n int) string {
	var statement strings.Builder
	statement.WriteString(`INSERT INTO ` + t.name + ` (` + quoted(t.columns) + `) VALUES `)
	for i := range n * len(t.columns) {
		switch {
		case i == 0:
			statement.WriteString(`(`)
		case i%len(t.columns) == 0:
			statement.WriteString(`), (`)
		default:
			statement.WriteString(`, `)
		}
		fmt.Fprintf(&statement, `$%d`, i+1)
	}
	statement.WriteString(`) ON CONFLICT (` + quoted(t.keyColumns()) + `) DO `)
	var changes []string
	for i, column := range t.columns {
		if !slices.Contains(t.key, i) {
			changes = append(changes, fmt.Sprintf(`"%s" = excluded."%s"`, column, column))
		}
	}
	if t.grows || len(changes) == 0 {
		statement.WriteString(`NOTHING`)
	} else {
		statement.WriteString(`UPDATE SET ` + strings.Join(changes, ", "))
	}
	return statement.String()
}
