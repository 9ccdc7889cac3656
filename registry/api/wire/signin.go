package wire

// StartDevice is the body of POST /api/cli/device/code (wire.md 3.2).
type StartDevice struct {
	Device string `json:"device"` // base64url of a JSON object
}

// DeviceCode is the answer to it.
type DeviceCode struct {
	DeviceCode      string `json:"device_code"`
	UserCode        string `json:"user_code"`
	Verification    string `json:"verification_uri,omitempty"` // left out where the server does not know its own address
	VerificationAll string `json:"verification_uri_complete,omitempty"`
	Interval        int64  `json:"interval"`   // seconds
	ExpiresIn       int64  `json:"expires_in"` // seconds
}

// PollDevice is the body of POST /api/cli/device/token.
type PollDevice struct {
	DeviceCode string `json:"device_code"`
}

// RedeemCode is the body of POST /api/cli/token (wire.md 3.3).
type RedeemCode struct {
	Code        string `json:"code"`
	Verifier    string `json:"verifier"`
	RedirectURI string `json:"redirect_uri"`
}

// RefreshToken is the body of POST /api/auth/refresh and /api/auth/logout (wire.md 3.4).
type RefreshToken struct {
	RefreshToken string `json:"refresh_token"`
}

// SignedIn is what a client gets for its sign-in or a refresh token.
type SignedIn struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in"` // seconds
	Session      string `json:"session"`    // its id
	User         User   `json:"user"`
}

// ApproveDevice is the body of POST /api/admin/device/approve.
type ApproveDevice struct {
	Code    string `json:"code"`
	Account string `json:"account"`
}

// Approved is the answer to it.
type Approved struct {
	Account string `json:"account"`
	Device  Device `json:"device"`
	Remote  string `json:"remote"` // the address that began the sign-in
}

// Device is what a client says of itself.
type Device struct {
	Name     string `json:"name"`
	Platform string `json:"platform"`
	Client   string `json:"client"`
	Version  string `json:"version"`
}

// Session is a sign-in that lasts.
type Session struct {
	ID        string `json:"id"`
	Account   string `json:"account"`
	Kind      string `json:"kind"` // client or browser
	Device    Device `json:"device"`
	Remote    string `json:"remote"`
	CreatedAt string `json:"created_at"` // RFC 3339
	UsedAt    string `json:"used_at"`    // begun, or refreshed last
	ExpiresAt string `json:"expires_at"`
	Current   bool   `json:"current"` // the one that asks
}

// SessionList is the answer of GET /api/sessions.
type SessionList struct {
	Sessions []Session `json:"sessions"`
}

// NewPassword is the body of POST /api/password.
type NewPassword struct {
	Username string `json:"username,omitempty"` // "" is the caller
	Old      string `json:"old,omitempty"`      // the present one; not needed for another account
	New      string `json:"new"`
}
