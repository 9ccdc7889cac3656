package registry

import (
	"context"
	"crypto/rand"
	"errors"
	"math/big"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// The device flow (RFC 8628, wire.md 3.2): a client without a browser shows a user code, and asks with its device code until
// somebody who signed in at the pages has approved or denied it, or an administrator has.
const (
	deviceTTL      = 15 * time.Minute
	deviceInterval = 3 * time.Second // between two questions of a client
	// Codes that wait for an approval are rows that anybody can make, so there are so many of a network and altogether.
	maxNetworkCodes = 200
	maxDeviceCodes  = 20_000
	// keepExpiredCodes is how long a code that expired is still known for one.
	keepExpiredCodes = time.Hour
)

// What a client's questions are answered with, word for word, while nothing is decided (RFC 8628 section 3.5).
var (
	errPending  = &Error{Code: GrantPending, Message: "authorization_pending"}
	errSlowDown = &Error{Code: GrantPending, Message: "slow_down"}
)

// userLetters are what user codes are made of: no vowels, so no words, and nothing that is taken for another. Eight of them are
// 25,600,000,000 codes.
const (
	userLetters    = "BCDFGHJKLMNPQRSTVWXZ"
	userCodeLength = 8
)

func newUserCode() string {
	code := make([]byte, userCodeLength)
	for i := range code {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(userLetters))))
		if err != nil {
			panic(err) // never (crypto/rand)
		}
		code[i] = userLetters[n.Int64()]
	}
	return string(code)
}

// ShownUserCode is a user code as people read it.
func ShownUserCode(code string) string {
	if len(code) != userCodeLength {
		return code
	}
	return code[:userCodeLength/2] + "-" + code[userCodeLength/2:]
}

// ParseUserCode reads what a person typed: in any case, with dashes and spaces anywhere. Errors: Invalid.
func ParseUserCode(typed string) (string, error) {
	var b strings.Builder
	for _, r := range strings.ToUpper(typed[:min(len(typed), 64)]) {
		switch {
		case strings.ContainsRune(userLetters, r):
			b.WriteRune(r)
		case r == '-' || r == ' ' || r == '\t':
		default:
			return "", Errorf(Invalid, "code: a code has eight letters, such as BCDF-GHJK, and none of A E I O U Y")
		}
	}
	if b.Len() != userCodeLength {
		return "", Errorf(Invalid, "code: a code has eight letters, such as BCDF-GHJK; found %d", b.Len())
	}
	return b.String(), nil
}

// DeviceGrant is the begin of a device flow.
type DeviceGrant struct {
	DeviceCode string // the client's secret
	UserCode   string // as people read it
	Interval   time.Duration
	TTL        time.Duration
}

// StartDevice begins a device flow. Errors: TooManyRequests.
func (s *Service) StartDevice(ctx context.Context, d Device) (DeviceGrant, error) {
	from, secret := nobody(ctx), auth.NewSecret()
	now := s.now()
	c := DeviceCode{Hash: auth.HashSecret(secret), Device: d, Remote: from.Remote, Network: networkOf(from.Remote), State: DevicePending,
		CreatedAt: now, ExpiresAt: now.Add(deviceTTL)}
	err := s.always.Update(ctx, func(tx Tx) error {
		ofNetwork, all, err := tx.DeviceCodes(c.Network, now)
		if err != nil {
			return err
		}
		if ofNetwork >= maxNetworkCodes || all >= maxDeviceCodes {
			return &Error{Code: TooManyRequests, RetryAfter: time.Minute, Message: "too many sign-ins wait for an approval: try again in a few minutes"}
		}
		for range 4 { // that even two are taken is next to impossible
			c.UserCode = newUserCode()
			if err = tx.InsertDeviceCode(c); !errors.Is(err, ErrConflict) {
				return err
			}
		}
		return err
	})
	return DeviceGrant{DeviceCode: secret, UserCode: ShownUserCode(c.UserCode), Interval: deviceInterval, TTL: deviceTTL}, err
}

// PollDevice is a client's question: the session's tokens once its flow is approved, and that only once. Errors: GrantPending,
// whose message says whether to wait or to slow down too; GrantInvalid when it is denied, expired, used or unknown.
func (s *Service) PollDevice(ctx context.Context, deviceCode string) (SessionTokens, error) {
	hash := auth.HashSecret(deviceCode)
	var out SessionTokens
	var slow bool
	err := s.always.Update(ctx, func(tx Tx) error {
		slow = false
		c, err := tx.DeviceCode(hash)
		switch {
		case errors.Is(err, ErrNotFound):
			return &Error{Code: GrantInvalid}
		case err != nil:
			return err
		case c.State == DeviceDenied:
			return Errorf(GrantInvalid, "the sign-in was denied")
		case c.State == DeviceUsed:
			return &Error{Code: GrantInvalid}
		case s.past(c.ExpiresAt):
			return Errorf(GrantInvalid, "the code has expired: sign in again")
		case c.State == DeviceApproved:
			out, err = s.takeDevice(ctx, tx, c)
			return err
		}
		slow = s.now().Sub(c.PolledAt) < deviceInterval-time.Second
		c.PolledAt = s.now()
		return tx.UpdateDeviceCode(c)
	})
	switch {
	case err != nil || out.Access != "":
		return out, err
	case slow:
		return out, errSlowDown
	}
	return out, errPending
}

// takeDevice makes the session of a flow that was approved.
func (s *Service) takeDevice(ctx context.Context, tx Tx, c DeviceCode) (SessionTokens, error) {
	c.State = DeviceUsed
	if err := tx.UpdateDeviceCode(c); err != nil {
		return SessionTokens{}, err
	}
	return s.grant(ctx, tx, Session{Account: c.Account, Credential: c.Credential, Device: c.Device})
}

// grant begins the session of a client and signs its tokens.
func (s *Service) grant(ctx context.Context, tx Tx, n Session) (SessionTokens, error) {
	p := nobody(ctx)
	n.Kind, n.Remote = ClientSession, p.Remote
	n, err := s.begin(tx, n)
	if err != nil {
		return SessionTokens{}, granted(err)
	}
	a, err := tx.Account(n.Account)
	if err != nil {
		return SessionTokens{}, err
	}
	if err := s.beganSession(tx, p, n); err != nil {
		return SessionTokens{}, err
	}
	return s.tokens(n, a)
}

// granted words why an approval is worth nothing any more.
func granted(err error) error {
	switch CodeOf(err) {
	case Unauthorized, Conflict, NotFound, Denied:
		return Errorf(GrantInvalid, "the sign-in was approved, but %w", err)
	}
	return err
}

// FindDevice is the device flow of a user code that waits for an approval, for somebody who signed in at the pages. Wrong codes
// are counted, of the account and of the network, as wrong passwords are. Errors: Unauthorized; Invalid, NotFound for a code
// that is none; TooManyRequests.
func (s *Service) FindDevice(ctx context.Context, p auth.Principal, userCode string) (DeviceCode, error) {
	if p.Anonymous() {
		return DeviceCode{}, &Error{Code: Unauthorized}
	}
	code, err := ParseUserCode(userCode)
	if err != nil {
		return DeviceCode{}, err
	}
	account, network := subjectOf("code:", p.Account), "code-network:"+networkOf(p.Remote)
	if err := s.countAttempt(ctx, account, network); err != nil {
		return DeviceCode{}, err
	}
	var c DeviceCode
	err = s.meta.View(ctx, func(tx Tx) (err error) {
		c, err = s.pending(tx, code)
		return err
	})
	if err != nil {
		return c, err
	}
	return c, s.uncount(ctx, account, network)
}

// pending is the device flow of a user code that nobody has decided yet. Errors: NotFound.
func (s *Service) pending(tx Tx, code string) (DeviceCode, error) {
	c, err := tx.DeviceCodeOf(code)
	if err == nil && (c.State != DevicePending || s.past(c.ExpiresAt)) {
		err = ErrNotFound
	}
	return c, notFound(err, "no sign-in waits for the code %s: it is mistyped, has expired, or was used", ShownUserCode(code))
}

// DecideDevice approves a device flow for whoever signed in at the pages, or denies it. The code must be one that FindDevice
// found for the same person before. Errors: those of FindDevice.
func (s *Service) DecideDevice(ctx context.Context, p auth.Principal, userCode string, approve bool) (DeviceCode, error) {
	c, err := s.FindDevice(ctx, p, userCode)
	if err != nil {
		return c, err
	}
	err = s.always.Update(ctx, func(tx Tx) error {
		if c, err = s.pending(tx, c.UserCode); err != nil {
			return err
		}
		if !approve {
			c.State = DeviceDenied
			if err := tx.UpdateDeviceCode(c); err != nil {
				return err
			}
			return s.audit(tx, p, "device.deny", c.Device.Name(), "")
		}
		credential, err := s.underlying(tx, p)
		if err != nil {
			return err
		}
		return s.approve(tx, p, &c, p.Account, credential)
	})
	return c, err
}

// ApproveDevice approves a device flow for an account that an administrator names, for automation. Errors: Denied, Invalid,
// NotFound; Conflict for an account that is disabled.
func (s *Service) ApproveDevice(ctx context.Context, p auth.Principal, userCode, account string) (DeviceCode, error) {
	var c DeviceCode
	if err := s.authorize(ctx, p, auth.ManageAccounts, "", "a sign-in of "+account); err != nil {
		return c, err
	}
	code, err := ParseUserCode(userCode)
	if err != nil {
		return c, err
	}
	err = s.always.Update(ctx, func(tx Tx) error {
		if c, err = s.pending(tx, code); err != nil {
			return err
		}
		a, err := tx.Account(account)
		switch {
		case err != nil:
			return notFound(err, "account %.100q does not exist", account)
		case isMachine(account):
			return Errorf(Invalid, "account: %.140q is a robot or a node, which has its secret and no sessions", account)
		case a.Disabled:
			return Errorf(Conflict, "account %s is disabled", account)
		}
		credential, err := s.vouched(tx, p, account)
		if err != nil {
			return err
		}
		return s.approve(tx, p, &c, account, credential)
	})
	return c, err
}

// vouched is what a session hangs on that an administrator approves for an account, so that it does not outlive what the
// administrator signed in with where that expires: for their own account that itself, as at the pages; for another one a token of
// that account which expires with it, and whose secret nobody has.
func (s *Service) vouched(tx Tx, p auth.Principal, account string) (credential string, err error) {
	if account == p.Account {
		return s.underlying(tx, p)
	}
	if p.TokenID == "" {
		return "", nil
	}
	own, err := tx.TokenByID(p.TokenID)
	if err != nil || own.ExpiresAt.IsZero() {
		return "", unauthorized(err)
	}
	t, err := s.insertToken(tx, account, "a sign-in that "+p.Account+" approved", auth.NewSecret(), own.ExpiresAt.Sub(s.now()))
	return t.ID, err
}

func (s *Service) approve(tx Tx, p auth.Principal, c *DeviceCode, account, credential string) error {
	c.State, c.Account, c.Credential = DeviceApproved, account, credential
	if err := tx.UpdateDeviceCode(*c); err != nil {
		return err
	}
	return s.audit(tx, p, "device.approve", account, c.Device.Name())
}
