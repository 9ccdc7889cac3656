package auth

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestPasswords(t *testing.T) {
	stored, err := HashPassword("correct horse")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(stored, "$argon2id$") || strings.Contains(stored, "correct") {
		t.Errorf("stored form %q is not argon2id", stored)
	}
	if err := CheckPassword(t.Context(), stored, "correct horse"); err != nil {
		t.Errorf("the right password: %v", err)
	}
	if err := CheckPassword(t.Context(), stored, "correct horsf"); !errors.Is(err, ErrPassword) {
		t.Errorf("a wrong password: %v, want ErrPassword", err)
	}
	again, err := HashPassword("correct horse")
	if err != nil || again == stored {
		t.Errorf("two hashes of one password are equal (%v): there is no salt", err)
	}
	if _, err := HashPassword("short"); err == nil {
		t.Error("a password below MinPassword was accepted")
	}
	for _, broken := range []string{"", "plain", "$argon2id$v=19$m=1$x$y", strings.Replace(stored, "$v=", "$w=", 1), stored[:len(stored)-4]} {
		if err := CheckPassword(t.Context(), broken, "correct horse"); err == nil || errors.Is(err, ErrPassword) {
			t.Errorf("stored form %q: %v, want an error about the form", broken, err)
		}
	}
}

func TestSecrets(t *testing.T) {
	a, b := NewSecret(), NewSecret()
	if a == b || len(a) < 40 {
		t.Errorf("secrets %q and %q: want two different ones of at least 40 characters", a, b)
	}
	if HashSecret(a) == HashSecret(b) {
		t.Error("HashSecret does not tell secrets apart")
	}
}

// TestAuthorizationTable walks the whole table: role by action, in the own namespace and in another's.
func TestAuthorizationTable(t *testing.T) {
	const own, foreign = 1, 2
	want := map[Action]map[Role]int{
		ReadContent:    {Admin: own | foreign, Operator: own | foreign, Auditor: own | foreign, Viewer: own | foreign},
		WriteContent:   {Admin: own | foreign, Operator: own},
		DeleteContent:  {Admin: own | foreign, Operator: own},
		PublishPolicy:  {Admin: own | foreign},
		ManagePacks:    {Admin: own | foreign},
		ManageAccounts: {Admin: own | foreign},
		OwnTokens:      {Admin: own | foreign, Operator: own | foreign, Auditor: own | foreign, Viewer: own | foreign},
		ImportCatalog:  {Admin: own | foreign},
		ReadCatalogue:  {Admin: own | foreign, Operator: own | foreign, Auditor: own | foreign, Viewer: own | foreign},
		SubmitJobs:     {Admin: own | foreign, Operator: own | foreign},
		ReadOwnJobs:    {Admin: own | foreign, Operator: own | foreign, Auditor: own | foreign, Viewer: own | foreign},
		ReadAllJobs:    {Admin: own | foreign, Auditor: own | foreign},
		ManageJobs:     {Admin: own | foreign},
		ReportJobs:     {Admin: own | foreign},
		ReadAudit:      {Admin: own | foreign, Auditor: own | foreign},
		AnyNamespace:   {Admin: own | foreign},
		ManageAccess:   {Admin: own | foreign, Operator: own},
		ReadPrivate:    {Admin: own | foreign, Auditor: own | foreign},
		CollectContent: {Admin: own | foreign},
		CheckContent:   {Admin: own | foreign},
		ManageQuotas:   {Admin: own | foreign},
		RevokePacks:    {Admin: own | foreign},
		ManageNodes:    {Admin: own | foreign},
		WriteRuns:      {Admin: own | foreign, Operator: own | foreign},
		ReadTrust:      {Admin: own | foreign, Operator: own | foreign, Auditor: own | foreign, Viewer: own | foreign},
		ReadJobFiles:   {Admin: own | foreign, Operator: own | foreign, Auditor: own | foreign, Viewer: own | foreign},
	}
	if len(want) != len(Actions) {
		t.Errorf("the test knows %d actions, the table %d", len(want), len(Actions))
	}
	for _, action := range Actions {
		for _, role := range Roles {
			p := Principal{Account: "alice", Role: role}
			if got := p.CanIn(action, "alice"); got != (want[action][role]&own != 0) {
				t.Errorf("%s, %s, own namespace: %v", role, action, got)
			}
			if got := p.CanIn(action, "bob"); got != (want[action][role]&foreign != 0) {
				t.Errorf("%s, %s, another's namespace: %v", role, action, got)
			}
		}
		for _, nobody := range []Principal{{}, {Account: "alice"}, {Role: Admin}, {Account: "alice", Role: "root"}} {
			if nobody.Can(action) {
				t.Errorf("%+v may do %s", nobody, action)
			}
		}
	}
}

// TestNodes checks what a node may do, alone and with the grant for a receipt, and that nobody else has what is a node's alone.
func TestNodes(t *testing.T) {
	all := append([]Action{ActAsNode, ReadPinned}, Actions...)
	launch := &Grant{Launch: &Launch{Job: "run-1", Content: map[string][]string{"a/x": {"sha256:1"}}}}
	for _, test := range []struct {
		what string
		p    Principal
		may  []Action
	}{
		{"a node", Principal{Account: "node/box", Role: Node}, []Action{ActAsNode, WriteRuns, ReadTrust}},
		{"with a grant", Principal{Account: "node/box", Role: Node, Grant: launch}, []Action{ReadPinned, ReadJobFiles}},
		{"with a grant of the token endpoint", Principal{Account: "node/box", Role: Node, Grant: &Grant{}}, nil},
		{"an administrator with a node's grant", Principal{Account: "admin", Role: Admin, Grant: launch}, nil},
	} {
		for _, action := range all {
			if got, want := test.p.Can(action), slices.Contains(test.may, action); got != want {
				t.Errorf("%s, %s: %v, want %v", test.what, action, got, want)
			}
		}
	}
	for _, role := range append([]Role{Robot}, Roles...) {
		for _, action := range []Action{ActAsNode, ReadPinned} {
			if (Principal{Account: "alice", Role: role, OwnerRole: Admin}).Can(action) {
				t.Errorf("%s may do %s", role, action)
			}
		}
	}
	if l := launch.Launch; !l.Names("a/x", "sha256:1") || l.Names("a/x", "sha256:2") || l.Names("a/y", "sha256:1") || l.Names("a/x", "") {
		t.Error("a launch names other bytes than its own")
	}
}
