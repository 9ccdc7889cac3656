package registry_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// TestGrace holds that what is young stays, that a push, a mount and a HEAD make a blob young, and what a dry run says of it.
func TestGrace(t *testing.T) {
	t.Parallel()
	everyEngine(t, registry.DefaultSettings(), func(t *testing.T, w *world) {
		ctx := context.Background()
		grace := registry.DefaultSettings().Collection.Grace
		blobs := map[string][]byte{"asked": large("asked"), "pushed": large("pushed"), "mounted": large("mounted"), "left": large("left")}
		for _, content := range blobs {
			w.must("push", push(ctx, w.other, "alice/app", content, false))
		}
		w.pass(grace - time.Minute)
		if r := w.collect(); r.Links != 0 {
			t.Errorf("within the time of grace: %+v", r)
		}
		_, err := w.other.StatBlob(ctx, root, "alice/app", digest.FromBytes(blobs["asked"]))
		w.must("ask", err)
		w.must("push again", push(ctx, w.other, "alice/app", blobs["pushed"], false))
		_, err = w.other.MountBlob(ctx, root, "alice/app", "alice/app", digest.FromBytes(blobs["mounted"]))
		w.must("mount", err)
		w.pass(10 * time.Minute)
		var told []registry.Removal
		_, err = w.janitor.Collect(ctx, root, registry.CollectOptions{DryRun: true, Each: func(r registry.Removal) error {
			told = append(told, r)
			return nil
		}})
		w.must("dry run", err)
		if len(told) != 1 || told[0].Kind != "link" || told[0].Repository != "alice/app" || told[0].Digest != digest.FromBytes(blobs["left"]) || !strings.Contains(told[0].Reason, "no manifest") {
			t.Errorf("a dry run tells of %+v, want the link that was left", told)
		}
		w.collect()
		for name, content := range blobs {
			if err := pullBlob(w.other, "alice/app", digest.FromBytes(content)); (err == nil) != (name != "left") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// TestAbandonedUploads holds that an upload that nobody finished goes with its bytes.
func TestAbandonedUploads(t *testing.T) {
	t.Parallel()
	w := newSQLiteWorld(t, registry.DefaultSettings())
	ctx := context.Background()
	u, err := w.other.StartUpload(ctx, root, "alice/app")
	w.must("start", err)
	content := large("half")
	_, err = w.other.AppendUpload(ctx, root, "alice/app", u.ID, registry.Chunk{Size: int64(len(content)), Body: bytes.NewReader(content)})
	w.must("append", err)
	if r := w.collect(); r.Uploads != 0 {
		t.Errorf("a young upload: %+v", r)
	}
	w.pass(registry.DefaultSettings().UploadTTL + time.Hour)
	if r := w.collect(); r.Uploads != 1 || r.Bytes != int64(len(content)) {
		t.Errorf("an old upload: %+v", r)
	}
	for u, err := range w.blobs.Uploads(ctx) {
		t.Errorf("upload %v, %v is left", u, err)
	}
	if st := w.janitor.Stats(); st.Collections != 2 || st.CollectedBytes != int64(len(content)) || st.LastCollection.IsZero() {
		t.Errorf("stats %+v", st)
	}
}

// TestCollectWhenDue holds that a collection comes when its time has come, once for all replicas.
func TestCollectWhenDue(t *testing.T) {
	t.Parallel()
	set := eager()
	set.Collection.Every = time.Hour
	everyEngine(t, set, func(t *testing.T, w *world) {
		ctx := context.Background()
		run := func() int64 {
			t.Helper()
			before := w.janitor.Stats().Collections + w.other.Stats().Collections
			w.must("first replica", w.janitor.CollectWhenDue(ctx))
			w.must("second replica", w.other.CollectWhenDue(ctx))
			return w.janitor.Stats().Collections + w.other.Stats().Collections - before
		}
		if got := run(); got != 1 {
			t.Errorf("at the start: %d collections", got)
		}
		w.pass(59 * time.Minute)
		if got := run(); got != 0 {
			t.Errorf("before the hour: %d collections", got)
		}
		w.pass(2 * time.Minute)
		if got := run(); got != 1 {
			t.Errorf("after the hour: %d collections", got)
		}
	})
}
