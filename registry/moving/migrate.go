package moving

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore"
	"github.com/gatehouse-registry/gatehouse/registry/metastore"
)

// Form is a registry's stores, in whatever engines.
type Form struct {
	Meta  *metastore.Store
	Blobs registry.BlobStore
}

// MigrateOptions say how to move a registry.
type MigrateOptions struct {
	Jobs   int  // blobs on their way at a time; 0 is 4
	Reread bool // read every blob of the target again at the end
	// Finish is called once the target holds everything and before it is opened for changes: it moves what lies outside
	// the stores, such as the signing key.
	Finish func(ctx context.Context) error
	Progress
}

// Migrated says what a move did.
type Migrated struct {
	RegistryID string          `json:"registryId"`
	Rounds     int             `json:"rounds"` // while the source took changes
	Blobs      int             `json:"blobs"`  // that the metadata name, all of them at the target
	BlobBytes  int64           `json:"blobBytes"`
	Copied     int             `json:"copied"` // by this run
	Small      int             `json:"small"`  // blobs in the metadata
	Rows       map[string]int  `json:"rows"`   // of each table, equal on both sides
	Lost       []digest.Digest `json:"lost,omitempty"`
}

// movedSetting is in the settings of a target that a move was finished to: from then on it may have changes of its own. Each
// move gives it another value, since a registry that is moved on takes that of the move before with it.
const movedSetting = "moved-here"

// readOnlyReason is what clients of the source are told from the last pass on.
const readOnlyReason = "it is being moved to another place, or was; use the new address"

// unfinishedReason is what clients of a server are told that was started on the target too early: a change there would be
// undone by the next round.
const unfinishedReason = "a move of the registry to this place is not finished"

// A move copies while the source takes changes until a round finds fewer than fewBlobs new blobs, or maxRounds were made.
const (
	fewBlobs  = 100
	maxRounds = 8
)

// Migrate moves a registry from one form to another while the source's server runs. The target must be empty, or what an
// interrupted Migrate of the same registry left there; no server may run on it. Bytes are verified by digest on the way, and
// every row is compared at the end. For the last pass the source is made read-only, and stays so when the move succeeded: a
// change that came later would be lost. Errors: Conflict when the target holds another registry, or one that was moved there
// already; DigestInvalid when something that the metadata name is at neither place.
func Migrate(ctx context.Context, from, to Form, opt MigrateOptions) (Migrated, error) {
	opt.Progress = opt.withDefaults()
	m := &migration{from: from, to: to, opt: opt, there: map[digest.Digest]bool{}}
	if m.opt.Jobs <= 0 {
		m.opt.Jobs = 4
	}
	if err := m.check(ctx); err != nil {
		return m.done, err
	}
	for m.done.Rounds = 1; m.done.Rounds <= maxRounds; m.done.Rounds++ {
		m.opt.Log(fmt.Sprintf("round %d, while the source takes changes", m.done.Rounds))
		copied, err := m.round(ctx)
		if err != nil {
			return m.done, err
		}
		if copied < fewBlobs {
			break
		}
	}
	return m.done, m.last(ctx)
}

type migration struct {
	from, to Form
	opt      MigrateOptions
	done     Migrated

	mu    sync.Mutex
	there map[digest.Digest]bool // blobs that the target has for sure
}

// check refuses a target that is somebody else.
func (m *migration) check(ctx context.Context) (err error) {
	if m.done.RegistryID, err = registry.KnownIdentity(ctx, m.from.Meta); err != nil {
		return fmt.Errorf("the source: %w", err)
	}
	target, err := registry.KnownIdentity(ctx, m.to.Meta)
	if err != nil && registry.CodeOf(err) != registry.NotFound {
		return err
	}
	if err == nil && target != m.done.RegistryID {
		return registry.Errorf(registry.Conflict, "the target holds the registry %s, not %s", target, m.done.RegistryID)
	}
	copied, err := movedBy(ctx, m.from.Meta)
	if err != nil {
		return err
	}
	finished, err := movedBy(ctx, m.to.Meta)
	if err == nil && finished != "" && finished != copied {
		err = registry.Errorf(registry.Conflict, "the registry was moved to the target already; what was changed there since would be lost")
	}
	return err
}

// movedBy names the move that was finished to a store, "" when there was none.
func movedBy(ctx context.Context, meta registry.MetaStore) (move string, err error) {
	err = meta.View(ctx, func(tx registry.Tx) (err error) {
		move, err = tx.Setting(movedSetting)
		return err
	})
	if errors.Is(err, registry.ErrNotFound) {
		return "", nil
	}
	return move, err
}

// round copies every blob of the source that the target lacks, and then the rows.
func (m *migration) round(ctx context.Context) (copied int, err error) {
	p := newPool(ctx, m.opt.Jobs)
	for b, err := range m.from.Blobs.All(ctx) {
		if err != nil {
			return 0, errors.Join(err, p.wait())
		}
		if !p.run(func() error { return m.blob(ctx, digest.Descriptor{Digest: b.Digest, Size: b.Size}, &copied) }) {
			break
		}
	}
	if err := p.wait(); err != nil {
		return copied, err
	}
	return copied, m.rows(ctx)
}

// blob copies one blob. That a collection removes it meanwhile is no fault: what the rows name is looked at in the end.
func (m *migration) blob(ctx context.Context, d digest.Descriptor, copied *int) error {
	m.mu.Lock()
	there := m.there[d.Digest]
	m.mu.Unlock()
	if there {
		return nil
	}
	var moved atomic.Int64
	err := copyBlob(ctx, m.from.Blobs, m.to.Blobs, d, Progress{Found: m.opt.Found, Moved: func(n int64) {
		moved.Add(n)
		m.opt.Moved(n)
	}})
	if registry.CodeOf(err) == registry.BlobUnknown {
		return nil
	}
	if _, damaged := errors.AsType[*digest.MismatchError](err); damaged {
		m.opt.Log(fmt.Sprintf("blob %s is damaged at the source: %v", d.Digest, err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("blob %s: %w", d.Digest, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.there[d.Digest] = true
	if moved.Load() > 0 || d.Size == 0 {
		*copied++
		m.done.Copied++
	}
	return nil
}

// rows copies the metadata as they are at one moment. From before the first row on the target takes no changes.
func (m *migration) rows(ctx context.Context) error {
	m.opt.Log("rows")
	if err := registry.SetReadOnly(ctx, m.to.Meta, unfinishedReason); err != nil {
		return err
	}
	m.done.Rows = map[string]int{}
	return metastore.Copy(ctx, m.from.Meta, m.to.Meta, func(table string, rows int) { m.done.Rows[table] = rows })
}

// last copies what came meanwhile with the source read-only, verifies the target, and opens it for changes.
func (m *migration) last(ctx context.Context) (err error) {
	before, err := registry.ReadOnly(ctx, m.from.Meta)
	if err != nil {
		return err
	}
	m.opt.Log("last pass: the source is read-only now")
	if err := registry.SetReadOnly(ctx, m.from.Meta, readOnlyReason); err != nil {
		return err
	}
	defer func() {
		if err != nil && before != readOnlyReason {
			err = errors.Join(err, registry.SetReadOnly(context.WithoutCancel(ctx), m.from.Meta, before))
		}
	}()
	if err := m.named(ctx); err != nil {
		return err
	}
	if err := m.rows(ctx); err != nil {
		return err
	}
	if err := m.verify(ctx); err != nil {
		return err
	}
	if m.opt.Finish != nil {
		if err := m.opt.Finish(ctx); err != nil {
			return err
		}
	}
	return m.to.Meta.Update(ctx, func(tx registry.Tx) error {
		if err := tx.PutSetting(movedSetting, m.done.RegistryID+" "+rand.Text()); err != nil {
			return err
		}
		return registry.PutReadOnly(tx, "")
	})
}

// named copies the blobs that the rows name and that no round has seen.
func (m *migration) named(ctx context.Context) error {
	p := newPool(ctx, m.opt.Jobs)
	copied := 0
	err := EachBlob(ctx, m.from.Meta, func(c NamedBlob) error {
		if !c.Small {
			p.run(func() error { return m.blob(ctx, c.Descriptor, &copied) })
		}
		return nil
	})
	return errors.Join(err, p.wait())
}

// verify holds that the target has everything that its rows name.
func (m *migration) verify(ctx context.Context) (err error) {
	m.opt.Log("verifying the target")
	m.done.Blobs, m.done.BlobBytes = 0, 0
	if m.done.Small, m.done.Lost, err = CheckSmall(ctx, m.to.Meta); err != nil {
		return err
	}
	p := newPool(ctx, m.opt.Jobs)
	err = EachBlob(ctx, m.to.Meta, func(c NamedBlob) error {
		if c.Small {
			return nil
		}
		m.done.Blobs++
		m.done.BlobBytes += c.Size
		p.run(func() error { return m.verifyBlob(ctx, c.Descriptor) })
		return nil
	})
	if err := errors.Join(err, p.wait()); err != nil {
		return err
	}
	if len(m.done.Lost) > 0 {
		return registry.Errorf(registry.DigestInvalid, "%d blobs that the metadata name are not at the target: the source has lost them, or holds them damaged (sf admin fsck tells which): %v",
			len(m.done.Lost), shown(m.done.Lost))
	}
	return nil
}

func (m *migration) verifyBlob(ctx context.Context, d digest.Descriptor) error {
	size, err := m.to.Blobs.Stat(ctx, d.Digest)
	if err == nil && size != d.Size {
		err = &digest.MismatchError{Want: d.Digest, Got: d.Digest, WantSize: d.Size, GotSize: size}
	}
	if err == nil && m.opt.Reread {
		err = blobstore.Verify(ctx, m.to.Blobs, d)
	}
	if isLost(err) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.done.Lost = append(m.done.Lost, d.Digest)
		return nil
	}
	return err
}
