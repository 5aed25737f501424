package provider

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// reportExpiry is the age at which a misconfiguration no longer counts. Other failures expire
// after checkExpiry.
const reportExpiry = time.Hour

// An EngineCheck is the last known state of an engine, without its fallbacks.
type EngineCheck struct {
	Serves   string    `json:"serves"` // "asr", "llm" or "tts"
	Provider string    `json:"provider"`
	Model    string    `json:"model,omitempty"`
	At       time.Time `json:"at"`              // time of the probe; zero if no result is known
	Error    string    `json:"error,omitempty"` // error message, often the provider's; empty if the engine works
	// Misconfigured reports that the error lasts until an operator changes a setting, such
	// as a wrong key or an unknown model. Other errors may pass.
	Misconfigured bool `json:"misconfigured,omitempty"`
}

// String describes a failed check.
func (e EngineCheck) String() string {
	name := map[string]string{"asr": "recognizer", "llm": "model", "tts": "voice"}[e.Serves] + " " + e.Provider
	if e.Model != "" {
		name += " (" + e.Model + ")"
	}
	return name + ": " + e.Error
}

// Report returns the last known state of each engine and its fallbacks, in that order. It
// sends no requests.
func (c *Checker) Report(e pipeline.Engines) []EngineCheck {
	now := time.Now()
	var all []EngineCheck
	for _, chain := range c.candidates(e) {
		for _, p := range chain {
			all = append(all, c.report(p, now))
		}
	}
	return all
}

func (c *Checker) report(p candidate, now time.Time) EngineCheck {
	r := EngineCheck{Serves: string(p.seam), Provider: p.engine.Provider, Model: p.engine.Model}
	if x, ok := c.lastResult(p); ok && !errors.Is(x.err, errNotConfigured) {
		r.At = x.at
		if x.err != nil {
			r.Error, r.Misconfigured = x.err.Error(), isMisconfigured(x.err)
		}
	}
	if open, _, _ := c.Guards.state(r.Serves, p.engine.EndpointID()); open && !r.Misconfigured {
		r.At, r.Error = now, cmp.Or(r.Error, ErrOpen.Error())
	}
	return r
}

// isMisconfigured reports whether an operator must act before requests can succeed.
func isMisconfigured(err error) bool {
	var refused *pipeline.RefusedError
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden:
		return true
	}
	return refused.IsRequestFault()
}

// Newest merges two reports on the same engines. It keeps the later result of each engine.
func Newest(a, b []EngineCheck) []EngineCheck {
	if len(a) != len(b) {
		return a
	}
	all := make([]EngineCheck, len(a))
	for i := range a {
		if all[i] = a[i]; b[i].At.After(a[i].At) {
			all[i] = b[i]
		}
	}
	return all
}

// Judge returns an error if calls would fail until an operator changes a setting: the recognizer, the model or the
// voice is misconfigured, together with all its fallbacks. Warnings describe the other failures. Misconfigurations
// older than an hour and other failures older than 2 min are ignored.
func Judge(report []EngineCheck, now time.Time) (warnings []string, err error) {
	report = slices.Clone(report)
	fatal := map[string]bool{}
	for i, r := range report {
		expiry := checkExpiry
		if r.Misconfigured {
			expiry = reportExpiry
		}
		if now.Sub(r.At) > expiry {
			report[i].Error, report[i].Misconfigured = "", false
		}
		was, seen := fatal[r.Serves]
		fatal[r.Serves] = (was || !seen) && report[i].Misconfigured
	}
	var errs []error
	for _, r := range report {
		switch {
		case r.Error == "":
		case fatal[r.Serves]:
			errs = append(errs, errors.New(r.String()))
		default:
			warnings = append(warnings, r.String())
		}
	}
	if len(errs) > 0 {
		err = errors.Join(errs...)
	}
	return warnings, err
}
