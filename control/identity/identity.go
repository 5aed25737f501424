// Package identity verifies operators with an OpenID Connect provider: authorization code flow with PKCE (RFC 7636), state
// and nonce.
package identity

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/media"
)

// Settings describe the provider and who may sign in.
type Settings struct {
	Issuer   string // URL; empty: no provider
	ClientID string
	Secret   media.Secret // may be empty, because PKCE protects the code
	Scopes   []string     // empty: openid and email
	Claim    string       // claim that holds the operator's email address; empty: email, which must be verified
	Domains  []string     // accepted domains of email addresses; empty: all
	Rules    []operator.Rule
	Only     bool // operators cannot sign in with a password
}

// Check returns an error if settings are missing.
func (s Settings) Check() error {
	switch {
	case s.Issuer == "" && s.Only:
		return errors.New("PARLEY_PASSWORDS: off requires PARLEY_OIDC_ISSUER")
	case s.Issuer == "" && s.ClientID != "":
		return errors.New("PARLEY_OIDC_ISSUER: missing; PARLEY_OIDC_CLIENT_ID requires it")
	case s.Issuer != "" && s.ClientID == "":
		return errors.New("PARLEY_OIDC_CLIENT_ID: missing; PARLEY_OIDC_ISSUER requires it")
	}
	return nil
}

// Limits of the provider.
const (
	flowLife    = 10 * time.Minute // time to sign in at the provider
	timeout     = 10 * time.Second // of a request to the provider
	maxResponse = 1 << 20          // bytes of a response of the provider
	retryAfter  = 5 * time.Second  // after a failure to read the provider's metadata
	skew        = time.Minute      // difference of the clocks
	maxSubject  = 255              // characters of the claim sub
)

// RefusedError means that the provider, or the settings, refuse the person.
type RefusedError struct{ Reason string }

// Error implements error.
func (e *RefusedError) Error() string { return e.Reason }

func refuse(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// Provider is the OpenID Connect provider. Its exported fields are set before the first use.
type Provider struct {
	Settings

	Redirect string // URL to which the provider returns the browser
	Key      []byte // signs the flow that the browser keeps; shared by all servers

	once   sync.Once
	turn   chan struct{} // guards the fields below
	found  *oidc.Provider
	failed time.Time
	err    error
}

// limited bounds the responses of the provider.
type limited struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxResponse), resp.Body}
	}
	return resp, err
}

func withClient(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, &http.Client{Timeout: timeout, Transport: limited{http.DefaultTransport}})
}

// discover reads the metadata of the provider, once. After a failure it tries again after retryAfter.
func (p *Provider) discover(ctx context.Context) (*oidc.Provider, error) {
	p.once.Do(func() { p.turn = make(chan struct{}, 1) })
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p.found != nil || p.err != nil && time.Since(p.failed) < retryAfter {
		return p.found, p.err
	}
	// A client that disconnects must not fail the sign-ins of others until retryAfter.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	p.found, p.err = oidc.NewProvider(withClient(ctx), p.Issuer)
	if p.err != nil {
		p.found, p.failed, p.err = nil, time.Now(), fmt.Errorf("identity provider: %w", p.err)
	}
	return p.found, p.err
}

// metadata are members of the provider's metadata.
type metadata struct {
	End         string `json:"end_session_endpoint"`
	NamesItself bool   `json:"authorization_response_iss_parameter_supported"` // RFC 9207
}

func readMetadata(at *oidc.Provider) (m metadata) {
	if at.Claims(&m) != nil {
		return metadata{}
	}
	return m
}

func (p *Provider) client(at *oidc.Provider) *oauth2.Config {
	scopes := p.Scopes
	if len(scopes) == 0 {
		scopes = []string{oidc.ScopeOpenID, "email"}
	}
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: string(p.Secret), Endpoint: at.Endpoint(), RedirectURL: p.Redirect, Scopes: scopes,
	}
}

// Start returns the address at the provider where the person signs in, and the flow that the browser keeps meanwhile.
// next is the page to show then.
func (p *Provider) Start(ctx context.Context, next string) (to, flow string, err error) {
	at, err := p.discover(ctx)
	if err != nil {
		return "", "", err
	}
	f := Flow{
		State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Next: next, Until: time.Now().Add(flowLife).Unix(),
	}
	return p.client(at).AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), p.seal(forFlow, f), nil
}

// Identity is a person whom the provider has verified.
type Identity struct {
	Person operator.Person
	Email  string
	// Roles are the roles by the rules, by the name of the organization.
	Roles map[string]operator.Role
}

// Finish exchanges the provider's code for the identity. The query is that of the provider's redirect, and f the flow
// that Open returned for it.
func (p *Provider) Finish(ctx context.Context, f Flow, query url.Values) (Identity, error) {
	if code := query.Get("error"); code != "" {
		return Identity{}, refuse("the provider refused: %.100q", code)
	}
	at, err := p.discover(ctx)
	if err != nil {
		return Identity{}, err
	}
	if readMetadata(at).NamesItself && !query.Has("iss") {
		return Identity{}, refuse("the redirect does not name the provider")
	}
	token, err := p.client(at).Exchange(withClient(ctx), query.Get("code"), oauth2.VerifierOption(f.Verifier))
	if failed, ok := errors.AsType[*oauth2.RetrieveError](err); ok { // its text would contain the response
		if failed.Response.StatusCode < http.StatusInternalServerError {
			return Identity{}, refuse("the provider refused the code: %.100q", failed.ErrorCode)
		}
		return Identity{}, fmt.Errorf("identity provider: %s", failed.Response.Status)
	}
	if err != nil {
		return Identity{}, fmt.Errorf("identity provider: %w", err)
	}
	raw, _ := token.Extra("id_token").(string)
	now := func() time.Time { return time.Now().Add(-skew) }
	id, err := at.Verifier(&oidc.Config{ClientID: p.ClientID, Now: now}).Verify(withClient(ctx), raw)
	if err != nil {
		return Identity{}, refuse("the token is not valid: %v", err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(f.Nonce)) != 1 {
		return Identity{}, refuse("the token is not valid: it has another nonce")
	}
	claims := map[string]any{}
	if err = id.Claims(&claims); err != nil {
		return Identity{}, refuse("the token is not valid: %v", err)
	}
	if party, ok := claims["azp"]; ok && party != p.ClientID || len(id.Audience) > 1 && !ok {
		return Identity{}, refuse("the token is not valid: it was issued to another client")
	}
	return p.identify(claims)
}

// identify reads the address and the roles from the claims of a valid token.
func (p *Provider) identify(claims map[string]any) (Identity, error) {
	claim := p.Claim
	if claim == "" {
		claim = "email"
	}
	subject, _ := claims["sub"].(string)
	if !isSubject(subject) {
		return Identity{}, refuse("the claim sub is not a text of 1 to %d printable ASCII characters", maxSubject)
	}
	text, _ := claims[claim].(string)
	if text == "" {
		return Identity{}, refuse("the token has no claim %s", claim)
	}
	if verified := claims["email_verified"]; claim == "email" && verified != true && verified != "true" {
		return Identity{}, refuse("the provider has not verified the email address")
	}
	email, err := operator.Address(text)
	if err != nil {
		return Identity{}, refuse("the claim %s is not an email address", claim)
	}
	if domain := email[strings.LastIndex(email, "@")+1:]; len(p.Domains) > 0 && !slices.Contains(p.Domains, domain) {
		return Identity{}, refuse("the domain %s is not accepted", domain)
	}
	// The issuer is the configured one, because Google sends it with and without https://.
	who := Identity{Person: operator.Person{Issuer: p.Issuer, Subject: subject}, Email: email, Roles: map[string]operator.Role{}}
	for _, r := range p.Rules {
		if has(claims[r.Claim], r.Value) && !who.Roles[r.Org].Includes(r.Role) {
			who.Roles[r.Org] = r.Role
		}
	}
	return who, nil
}

// isSubject reports whether s can identify a person (OpenID Connect Core 1.0, section 2), and be shown.
func isSubject(s string) bool {
	return s != "" && len(s) <= maxSubject && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// has reports whether a claim is the value, or a list that contains it.
func has(claim any, value string) bool {
	list, ok := claim.([]any)
	if !ok {
		list = []any{claim}
	}
	return slices.Contains(list, any(value))
}

// SignOutURL returns the address where a person signs out of the provider, and then comes back to the page. It is empty
// if the provider has none.
func (p *Provider) SignOutURL(ctx context.Context, back string) string {
	at, err := p.discover(ctx)
	if err != nil {
		return ""
	}
	end, err := url.Parse(readMetadata(at).End)
	if err != nil || end.Scheme != "https" && end.Scheme != "http" {
		return ""
	}
	q := end.Query()
	q.Set("client_id", p.ClientID)
	q.Set("post_logout_redirect_uri", back)
	end.RawQuery = q.Encode()
	return end.String()
}

// Host returns the host of the provider, as a name for people.
func (p *Provider) Host() string {
	u, err := url.Parse(p.Issuer)
	if err != nil {
		return p.Issuer
	}
	return u.Hostname()
}
