package registry

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/admission/suite"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// ticketTTL is how long a ticket may be used to begin an upload. The clients ask for one just before each PUT.
const ticketTTL = 15 * time.Minute

// Ticket is the right to upload one file of one version. The real clients send no credential with the bytes, so the address
// itself carries it (wire.md 7): signed, short-lived, and bound to everything that it is for. Whoever asked for it must still
// be allowed to push when the bytes come.
type Ticket struct {
	Kind       suite.Kind `json:"k"`
	Owner      string     `json:"o"`
	Name       string     `json:"n"`
	Version    string     `json:"v"`
	File       string     `json:"f"`
	Public     bool       `json:"p,omitempty"` // every account may read the suite, should the upload create it
	Account    string     `json:"a"`
	Credential string     `json:"c"` // what the account signed in with
	Most       int64      `json:"m"` // bytes that the file may have
	Expires    int64      `json:"e"` // Unix time
}

// ID is the suite that the ticket is for.
func (t Ticket) ID() SuiteID { return SuiteID{t.Kind, t.Owner, t.Name} }

// ref is the version that the ticket is for, as messages name it.
func (t Ticket) ref() string { return t.ID().String() + "@" + t.Version }

// ticketEncoding writes a ticket in one way only.
var ticketEncoding = base64.RawURLEncoding.Strict()

// ticketMAC signs a ticket with the key of uploads, apart from their ids.
func (s *Service) ticketMAC(payload string) []byte {
	mac := hmac.New(sha256.New, s.uploadKey)
	mac.Write([]byte("suite ticket\x00" + payload))
	return mac.Sum(nil)
}

// seal makes the text of a ticket, which needs no escaping in an address.
func (s *Service) seal(t Ticket) (string, error) {
	b, err := json.Marshal(t)
	payload := ticketEncoding.EncodeToString(b)
	return payload + "." + ticketEncoding.EncodeToString(s.ticketMAC(payload)), err
}

// openTicket reads a ticket. Errors: Denied for one that is forged or has expired, upon which the clients ask for another.
func (s *Service) openTicket(text string) (t Ticket, err error) {
	payload, signature, _ := strings.Cut(text, ".")
	mac, err := ticketEncoding.DecodeString(signature)
	if err != nil || !hmac.Equal(mac, s.ticketMAC(payload)) {
		return t, Errorf(Denied, "the upload address is not valid: ask for another")
	}
	b, err := ticketEncoding.DecodeString(payload)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	if err != nil {
		return t, err
	}
	if s.now().Unix() >= t.Expires {
		return t, Errorf(Denied, "the upload address has expired: ask for another")
	}
	return t, nil
}

// SuiteUpload asks for the right to upload one file.
type SuiteUpload struct {
	Kind    suite.Kind
	Name    string // <owner>/<name>, or a bare name of the caller's own namespace
	Version string
	File    string
	Public  bool // for a suite that does not exist yet
}

// TicketFor answers whether the caller may upload a file of a version, and gives the ticket for it. For index.json, which
// seals the version, the documents that were uploaded are judged already: what is wrong with them a client can show only
// here. Errors: Denied, NameInvalid, Invalid, Conflict for a version that is sealed, TooLarge, and a *rule.Denied.
func (s *Service) TicketFor(ctx context.Context, p auth.Principal, u SuiteUpload) (t Ticket, text string, err error) {
	id, err := suiteIDOf(p, u.Kind, u.Name)
	if err != nil {
		return t, "", err
	}
	repository, err := id.Repository()
	if err != nil {
		return t, "", err
	}
	if err := s.mayWrite(ctx, p, repository); err != nil {
		return t, "", err
	}
	if err := checkUpload(u); err != nil {
		return t, "", err
	}
	t = Ticket{
		Kind: u.Kind, Owner: id.Owner, Name: id.Name, Version: u.Version, File: u.File, Public: u.Public,
		Account: p.Account, Credential: credentialIn(p), Most: s.mostBytes(u), Expires: s.now().Add(ticketTTL).Unix(),
	}
	err = s.meta.View(ctx, func(tx Tx) error { return s.checkOpen(tx, t, repository) })
	if err == nil && u.File == suite.IndexFile {
		err = s.checkBeforeIndex(ctx, p, t, repository)
	} else if err == nil {
		_, err = s.checkRoom(ctx, repository, digest.Digest{}, 0)
	}
	if err != nil {
		return t, "", err
	}
	text, err = s.seal(t)
	return t, text, err
}

// credentialIn names what a principal signed in with.
func credentialIn(p auth.Principal) string {
	if p.Credential != "" {
		return p.Credential
	}
	return p.TokenID
}

// suiteIDOf reads <owner>/<name>, or a bare name, which is in the caller's namespace. Errors: Invalid.
func suiteIDOf(p auth.Principal, kind suite.Kind, text string) (SuiteID, error) {
	owner, short, ok := strings.Cut(text, "/")
	if !ok {
		owner, short = p.Namespace(), text
	}
	if !name.IsSegment(owner) || !name.IsSegment(short) || name.IsReservedOwner(owner) {
		return SuiteID{}, Errorf(Invalid, "%s: %.200q is no name: expected <owner>/<name>, or a name of your own", kind, text)
	}
	return SuiteID{kind, owner, short}, nil
}

// checkUpload refuses what can be no version or no file. Errors: Invalid, TooLarge.
func checkUpload(u SuiteUpload) error {
	if _, err := name.ParseVersion(u.Version); err != nil {
		return Errorf(Invalid, "version: %w", err)
	}
	if faults := suite.CheckFileName(u.File); len(faults) > 0 {
		code := Invalid
		if info, _ := rule.Lookup(faults[0].Rule); info.Class == rule.TooLarge {
			code = TooLarge
		}
		return Errorf(code, "filename: %s", faults[0])
	}
	return nil
}

// mostBytes is how large the file may be.
func (s *Service) mostBytes(u SuiteUpload) int64 {
	switch {
	case u.File == suite.IndexFile:
		return limit.SuiteIndex
	case u.Kind == suite.Environment && u.File == suite.ManifestFile:
		return limit.Document
	case u.Kind == suite.Environment && u.File == suite.TasksFile:
		return limit.Tasks
	case u.Kind == suite.Taskset && u.File == suite.TasksetFile:
		return limit.TasksetManifest
	}
	return s.set.MaxBlob
}

// checkOpen answers why a file can't be added to a version. Errors: Conflict, TooLarge.
func (s *Service) checkOpen(tx Tx, t Ticket, repository string) error {
	if err := checkSealed(tx, t, repository); err != nil {
		return err
	}
	n, err := tx.SuiteFileCount(repository, t.Version)
	if err != nil || n < limit.SuiteFiles || t.File == suite.IndexFile {
		return err
	}
	if _, err = tx.SuiteFile(repository, t.Version, t.File); errors.Is(err, ErrNotFound) {
		return Errorf(TooLarge, "%s %s has %d files, the most that is allowed: %s", t.Kind, t.ref(), n, "pack small files into archives, or split it")
	}
	return err
}

// checkSealed refuses a version that is sealed, was sealed once, or equals one that is. Errors: Conflict.
func checkSealed(tx Tx, t Ticket, repository string) error {
	versions, err := tx.SuiteVersions(repository)
	if err != nil {
		return err
	}
	for _, v := range versions {
		switch {
		case v.Name != t.Name:
			return Errorf(Conflict, "the name %.130q is taken for %.130q, which %s has already", t.Name, v.Name, v.Owner)
		case v.Version == t.Version:
			return Errorf(Conflict, "%s %s is sealed and never changes (manifest %s): push another version", t.Kind, t.ref(), v.Manifest)
		case name.Equal(v.Version, t.Version):
			return Errorf(Conflict, "version %.130q of %s equals the sealed version %.130q", t.Version, t.ID(), v.Version)
		}
	}
	return nil
}

// PutSuiteFile takes the bytes that a ticket is for. index.json seals the version: then sealed is that. Errors: Denied for
// a ticket that is no good any more, Conflict, TooLarge, Invalid for an index of other files than were uploaded, and a
// *rule.Denied.
func (s *Service) PutSuiteFile(ctx context.Context, ticket string, size int64, body io.Reader) (t Ticket, sealed *SuiteVersion, err error) {
	if t, err = s.openTicket(ticket); err != nil {
		return t, nil, err
	}
	p, err := s.holder(ctx, t)
	if err != nil {
		return t, nil, err
	}
	repository, err := t.ID().Repository()
	if err != nil {
		return t, nil, err
	}
	if err := s.mayWrite(ctx, p, repository); err != nil {
		return t, nil, err
	}
	if size > t.Most {
		return t, nil, Errorf(TooLarge, "%s has %d bytes, at most %d are allowed", t.File, size, t.Most)
	}
	if t.File != suite.IndexFile {
		return t, nil, s.putSuiteFile(ctx, t, repository, max(size, 0), body)
	}
	index, err := readAtMost(body, t.Most)
	if err != nil {
		return t, nil, err
	}
	v, err := s.sealSuite(ctx, p, t, repository, index)
	return t, &v, err
}

// holder is who asked for a ticket, as that account is now. Errors: Denied when its credential is no good any more.
func (s *Service) holder(ctx context.Context, t Ticket) (auth.Principal, error) {
	p, err := s.signedIn(ctx, rowKey{credentialRow, t.Account, t.Credential}, func(tx Tx) (signedIn, error) {
		return s.principal(tx, t.Account, t.Credential)
	})
	if CodeOf(err) == Unauthorized {
		err = Errorf(Denied, "whoever asked for this upload address is not signed in any more")
	}
	from := nobody(ctx)
	p.Remote, p.Request = from.Remote, from.Request
	return p, err
}

// readAtMost reads a small body whole. Errors: TooLarge.
func readAtMost(body io.Reader, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(body, most+1))
	if err == nil && int64(len(b)) > most {
		err = Errorf(TooLarge, "the body has more than %d bytes, the most that is allowed", most)
	}
	return b, err
}

// putSuiteFile stores a file and its row. Until the version is sealed it is the owner's to pay for and nobody's to see.
func (s *Service) putSuiteFile(ctx context.Context, t Ticket, repository string, size int64, body io.Reader) error {
	room, err := s.checkRoom(ctx, repository, digest.Digest{}, size)
	if err != nil {
		return err
	}
	h := sha256.New()
	rec, err := s.receive(ctx, io.TeeReader(body, h), min(t.Most, room))
	if err != nil {
		return err
	}
	c, err := s.keep(ctx, rec, digest.FromHash(digest.SHA256, h))
	if err != nil {
		return err
	}
	c.MediaType = blobMediaType
	return s.commitContent(ctx, []content{c}, s.charged(repository, func(tx Tx) error {
		if err := s.checkOpen(tx, t, repository); err != nil {
			return err
		}
		if err := s.ensureSuiteRepository(tx, repository); err != nil {
			return err
		}
		if err := tx.LinkBlob(repository, c.Descriptor, s.now()); err != nil {
			return err
		}
		return tx.PutSuiteFile(SuiteFile{
			Repository: repository, Version: t.Version, Name: t.File, Digest: c.Digest, Size: c.Size, Account: t.Account,
			ExpiresAt: s.now().Add(s.set.UploadTTL),
		})
	}))
}

// ensureSuiteRepository makes the repository of a suite, which only its owner reads until its first version says otherwise.
func (s *Service) ensureSuiteRepository(tx Tx, repository string) error {
	if _, err := tx.Repository(repository); !errors.Is(err, ErrNameUnknown) {
		return err
	}
	if err := s.ensureRepository(tx, repository); err != nil {
		return err
	}
	return tx.SetRepositoryAccess(repository, true, nil)
}

// suiteDocument reads a small file that was uploaded: no ticket lets one be larger than its reader takes.
func (s *Service) suiteDocument(ctx context.Context, f suite.File) ([]byte, error) {
	b, err := s.openContent(ctx, digest.Descriptor{Digest: f.Digest, Size: f.Size})
	if err != nil {
		return nil, err
	}
	defer b.Close()
	src, err := io.ReadAll(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return src, nil
}
