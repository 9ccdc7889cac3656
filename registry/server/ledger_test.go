package server_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/server"
)

// TestOlderBackupKeepsVersionsTaken holds that a version published after a backup can't be published again, with other
// bytes, once that backup of the metadata is restored: the ledger file remembers it.
func TestOlderBackupKeepsVersionsTaken(t *testing.T) {
	data := t.TempDir()
	admin := auth.Principal{Account: registry.AdminAccount, Role: auth.Admin}
	publish := func(version string) error {
		t.Helper()
		s, err := server.Open(t.Context(), server.Config{Data: data, Listen: "127.0.0.1:0"}, "test", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		archive := archiveOf(t, algorithm("kept", version))
		_, _, err = s.Service().PublishArchive(t.Context(), admin, "", bytes.NewReader(archive))
		return err
	}
	if err := publish("1.0.0"); err != nil {
		t.Fatal(err)
	}
	database := filepath.Join(data, "gatehouse.db")
	backup, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	if err := publish("1.1.0"); err != nil {
		t.Fatal(err)
	}
	for _, old := range []string{database + "-wal", database + "-shm"} {
		if err := os.Remove(old); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(database, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := publish("1.1.0"); registry.CodeOf(err) != registry.Conflict {
		t.Errorf("publishing 1.1.0 again after the restore: %v, want a conflict", err)
	}
	if err := publish("1.2.0"); err != nil {
		t.Errorf("publishing a new version after the restore: %v", err)
	}
}
