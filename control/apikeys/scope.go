package apikeys

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Scope is a part of the API that a key may use.
type Scope string

// Scopes. A key without scopes may use all parts.
const (
	ScopeRead      Scope = "read"      // read calls, routes, campaigns and imports
	ScopeCalls     Scope = "calls"     // request and end calls, and read routes
	ScopeCampaigns Scope = "campaigns" // create, change and read campaigns and imports, and withdraw contacts
	ScopeAdmin     Scope = "admin"     // administration, with a privileged key
)

// Scopes returns all scopes.
func Scopes() []Scope { return []Scope{ScopeRead, ScopeCalls, ScopeCampaigns, ScopeAdmin} }

// ParseScopes converts names to scopes without repetitions. The error names the accepted ones.
func ParseScopes(names []string) (all []Scope, err error) {
	for _, name := range names {
		s := Scope(strings.TrimSpace(name))
		if !slices.Contains(Scopes(), s) {
			return nil, fmt.Errorf("scope %q: accepted: %s", name, JoinScopes(Scopes()))
		}
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all, nil
}

// JoinScopes returns the names of scopes, separated by commas.
func JoinScopes(all []Scope) string {
	names := make([]string, len(all))
	for n, s := range all {
		names[n] = string(s)
	}
	return strings.Join(names, ", ")
}

// Allows reports whether the key has one of the scopes, or may use all parts of the API.
func (k Key) Allows(scopes ...Scope) bool {
	return len(k.Scopes) == 0 || slices.ContainsFunc(scopes, func(s Scope) bool { return slices.Contains(k.Scopes, s) })
}

// MaxLife is the longest time until a key expires.
const MaxLife = 10 * 366 * 24 * time.Hour

// CheckExpiry returns an error unless a new key may expire at the time. Nil means never.
func CheckExpiry(at *time.Time, now time.Time) error {
	if at == nil || at.After(now) && at.Before(now.Add(MaxLife)) {
		return nil
	}
	return fmt.Errorf("expiry %s: accepted: a time in the next 10 years", at.UTC().Format(time.RFC3339))
}

// CheckGrant returns an error if the new key may do more than k, or ends later. Otherwise a narrow key could create a
// wider one.
func (k Key) CheckGrant(to Key) error {
	if len(k.Scopes) > 0 && (len(to.Scopes) == 0 || slices.ContainsFunc(to.Scopes, func(s Scope) bool { return !k.Allows(s) })) {
		return fmt.Errorf("this API key has the scopes %s and can create only keys with some of them", JoinScopes(k.Scopes))
	}
	if k.ExpiresAt != nil && (to.ExpiresAt == nil || to.ExpiresAt.After(*k.ExpiresAt)) {
		return fmt.Errorf("this API key expires at %s and can create only keys that expire no later", k.ExpiresAt.UTC().Format(time.RFC3339))
	}
	return nil
}

// Properties returns what the audit log says of a new key.
func (k Key) Properties() map[string]any {
	return map[string]any{
		"name": k.Name, "rate_limit": k.RateLimit, "privileged": k.Privileged, "scopes": k.Scopes, "expires_at": k.ExpiresAt,
	}
}
