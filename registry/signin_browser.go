package registry

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// The browser flow with PKCE (RFC 8252, RFC 7636, wire.md 3.3): a client listens on the loopback interface, opens the page of
// authorization, and gets a code there that is good for it alone: who redeems it shows the verifier whose hash the page was
// opened with.
const (
	codeTTL          = time.Minute
	challengeLength  = 43 // base64url of a sha256
	maxVerifier      = 128
	maxRedirect      = 256 // bytes
	maxState         = 512
	maxCode          = 128
	plainPathLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._~-"
)

// Authorization is what a client opens the page of authorization with.
type Authorization struct {
	RedirectURI string
	State       string // given back as it is
	Challenge   string
	Device      Device
}

// CheckAuthorization reads the parameters of the page. Nothing is ever redirected to an address that it refuses. Errors:
// Invalid.
func CheckAuthorization(redirectURI, state, challenge, device string) (Authorization, error) {
	a := Authorization{RedirectURI: redirectURI, State: state, Challenge: challenge}
	if err := checkRedirect(redirectURI); err != nil {
		return a, err
	}
	if len(state) > maxState {
		return a, Errorf(Invalid, "state: %d bytes, at most %d are allowed", len(state), maxState)
	}
	if sum, err := base64.RawURLEncoding.DecodeString(challenge); err != nil || len(challenge) != challengeLength || len(sum) != sha256.Size {
		return a, Errorf(Invalid, "challenge: want the base64url of a sha256, %d characters", challengeLength)
	}
	var err error
	a.Device, err = ParseDevice(device)
	return a, err
}

// checkRedirect accepts addresses of a client on the browser's own machine, and nothing that two readers could take for
// different ones.
func checkRedirect(address string) error {
	bad := Errorf(Invalid, "redirect_uri: %s is no address of a client on this machine (http://127.0.0.1:PORT/PATH)", Shown(address))
	u, err := url.Parse(address)
	if err != nil || len(address) > maxRedirect {
		return bad
	}
	host, port, _ := strings.Cut(u.Host, ":")
	n, err := strconv.ParseUint(port, 10, 16)
	path := strings.Trim(u.Path, plainPathLetters) == ""
	if err != nil || n == 0 || !path || host != "127.0.0.1" && host != "localhost" || address != "http://"+host+":"+strconv.FormatUint(n, 10)+u.Path || u.Path == "" {
		return bad
	}
	return nil
}

// Origin is the scheme, host and port of the client's address.
func (a Authorization) Origin() string {
	end := strings.IndexByte(a.RedirectURI[len("http://"):], '/')
	return a.RedirectURI[:len("http://")+end]
}

// Granted is where the browser goes with a code.
func (a Authorization) Granted(code string) string { return a.back(url.Values{"code": {code}}) }

// Refused is where the browser goes when the user refused.
func (a Authorization) Refused() string { return a.back(url.Values{"error": {"access_denied"}}) }

func (a Authorization) back(q url.Values) string {
	if a.State != "" {
		q.Set("state", a.State)
	}
	return a.RedirectURI + "?" + q.Encode()
}

// Authorize makes the code of an authorization that whoever signed in at the pages approved. Errors: Unauthorized.
func (s *Service) Authorize(ctx context.Context, p auth.Principal, a Authorization) (code string, err error) {
	if p.Anonymous() {
		return "", &Error{Code: Unauthorized}
	}
	secret := auth.NewSecret()
	err = s.always.Update(ctx, func(tx Tx) error {
		credential, err := s.underlying(tx, p)
		if err != nil {
			return err
		}
		c := AuthorizationCode{Hash: auth.HashSecret(secret), Account: p.Account, Credential: credential, Challenge: a.Challenge,
			RedirectURI: a.RedirectURI, Device: a.Device, ExpiresAt: s.now().Add(codeTTL)}
		if err := tx.InsertAuthorizationCode(c); err != nil {
			return err
		}
		return s.audit(tx, p, "client.authorize", p.Account, a.Device.Name())
	})
	return secret, err
}

// RedeemCode makes the session of an authorization. A code that comes a second time was stolen by one of the two who showed it:
// the session that was made of it ends. Errors: GrantInvalid.
func (s *Service) RedeemCode(ctx context.Context, code, verifier, redirectURI string) (SessionTokens, error) {
	var out SessionTokens
	if len(code) > maxCode || len(verifier) > maxVerifier {
		return out, &Error{Code: GrantInvalid}
	}
	hash, sum := auth.HashSecret(code), sha256.Sum256([]byte(verifier))
	challenge := base64.RawURLEncoding.EncodeToString(sum[:])
	var stolen string
	err := s.always.Update(ctx, func(tx Tx) error {
		stolen = ""
		c, err := tx.AuthorizationCode(hash)
		if errors.Is(err, ErrNotFound) {
			return &Error{Code: GrantInvalid}
		}
		if err != nil {
			return err
		}
		proven := subtle.ConstantTimeCompare([]byte(challenge), []byte(c.Challenge)) == 1 && redirectURI == c.RedirectURI
		switch {
		case c.Session != "":
			stolen = c.Session
			return s.revokeStolen(ctx, tx, c)
		case s.past(c.ExpiresAt) || !proven:
			return &Error{Code: GrantInvalid}
		}
		if out, err = s.grant(ctx, tx, Session{Account: c.Account, Credential: c.Credential, Device: c.Device}); err != nil {
			return err
		}
		return tx.UseAuthorizationCode(hash, out.Session.ID)
	})
	if err == nil && stolen != "" {
		err = &Error{Code: GrantInvalid}
	}
	return out, err
}

func (s *Service) revokeStolen(ctx context.Context, tx Tx, c AuthorizationCode) error {
	n, err := tx.Session(c.Session)
	if errors.Is(err, ErrNotFound) || err == nil && !n.RevokedAt.IsZero() {
		return nil
	}
	if err != nil {
		return err
	}
	n.RevokedAt = s.now()
	if err := tx.UpdateSession(n); err != nil {
		return err
	}
	p := nobody(ctx)
	p.Account = c.Account
	return tx.InsertAudit(s.auditRow(p, "session.reuse", n.ID, string(GrantInvalid), "a code was used again: the session was ended"))
}

// FormToken is what a form of the pages holds, so that only forms that this registry gave a browser are taken from it: a keyed
// hash of what the browser's cookies hold.
func (s *Service) FormToken(nonce, session string) string {
	mac := hmac.New(sha256.New, s.tokenKey)
	mac.Write([]byte("gatehouse form\x00" + nonce + "\x00" + session))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
