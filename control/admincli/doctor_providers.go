package admincli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
	"github.com/parley-voice/parley/pipeline/provider/selftest"
)

// part is what a provider does for agents: "asr", "llm" or "tts".
type part struct{ serves, name string }

func (p part) String() string {
	return map[string]string{"asr": "speech-to-text", "llm": "model", "tts": "voice"}[p.serves] + " " + p.name
}

// account returns the name of the endpoint. A Deepgram endpoint has a second recognizer.
func (p part) account() string { return strings.TrimSuffix(p.name, "-flux") }

// checkProviders sends a short request to each provider that published agents use. If no agent is published, it tests
// all providers.
func (s *stored) checkProviders(ctx context.Context) (found []Finding) {
	var q db.Querier
	if d := s.usable(); d != nil {
		q = d.Pool
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	more := map[string]endpoints.Endpoint{}
	if s.file.Providers != nil {
		more = apply.Endpoints(*s.file.Providers)
	}
	test, accounts, end, err := s.Providers(ctx, q, more)
	if err != nil {
		return []Finding{{"provider", Warning, fmt.Sprintf("not checked: %v", err), "correct the errors of the database first"}}
	}
	defer end()
	used, err := s.usedParts(ctx, q)
	if err != nil {
		return []Finding{{"provider", Warning, fmt.Sprintf("not checked: %v", err), "correct the errors of the database first"}}
	}
	found = append(judgeKeys(accounts, used), judgeMissing(test, used)...)
	unused := selectParts(&test, accounts, used)
	var results []selftest.Result
	test.Run(ctx, func(r selftest.Result) { results = append(results, r) })
	found = append(found, judgeResults(results, accounts)...)
	if len(unused) > 0 {
		found = append(found, Finding{"provider", OK, "not tested, because no published agent uses them: " + strings.Join(unused, ", "), ""})
	}
	if len(found) == 0 {
		found = append(found, Finding{"provider", Warning, "no provider is configured", "docs/providers.md lists the settings"})
	}
	return found
}

// usage maps the parts that published agents use to the organization and the name of one of these agents. It is empty if
// no agent is published.
type usage map[part][2]string

// usedParts returns what the published agents of the database and of the file use.
func (s *stored) usedParts(ctx context.Context, q db.Querier) (usage, error) {
	used := usage{}
	add := func(org, agent string, e pipeline.Engines) {
		e.Change(func(serves string, one *pipeline.Engine) { used[part{serves, one.Provider}] = [2]string{org, agent} })
	}
	for _, o := range s.file.Organizations {
		for _, a := range o.Agents {
			if a.Published != nil && *a.Published {
				add(o.Name, a.Name, a.Definition().Speech)
			}
		}
		if o.Providers != nil {
			maps.DeleteFunc(used, func(p part, by [2]string) bool {
				return by[0] == o.Name && slices.ContainsFunc(*o.Providers, func(own apply.Provider) bool { return own.Name == p.account() })
			})
		}
	}
	if q == nil {
		return used, nil
	}
	published, err := agents.Published(ctx, q)
	for _, a := range published {
		add(a.Organization, a.Name, a.Definition.Speech)
	}
	return used, err
}

// has reports whether an agent uses a provider, or the provider of an organization with the name ORGANIZATION/NAME.
func (u usage) has(p part) bool {
	org, name, own := strings.Cut(p.name, "/")
	if !own {
		_, used := u[p]
		return used
	}
	by, used := u[part{p.serves, name}]
	return used && by[0] == org
}

// judgeKeys reports the providers whose key is a placeholder.
func judgeKeys(accounts map[string]endpoints.Endpoint, used usage) (found []Finding) {
	for _, name := range slices.Sorted(maps.Keys(accounts)) {
		if !control.HasPlaceholder(string(accounts[name].Key)) {
			continue
		}
		f := Finding{
			"provider", Error, fmt.Sprintf("the key of %s is still %s", name, control.Placeholder),
			fmt.Sprintf("enter the key: PARLEY_%s_API_KEY, or key in the operator's file", strings.ToUpper(name)),
		}
		if isUsed := slices.ContainsFunc([]string{"asr", "llm", "tts"}, func(serves string) bool {
			return used.has(part{serves, name}) || used.has(part{serves, name + "-flux"})
		}); len(used) > 0 && !isUsed {
			f.Level, f.Result = Warning, f.Result+"; no published agent uses it"
		}
		found = append(found, f)
	}
	return found
}

// judgeMissing reports the providers that agents use and that are not configured.
func judgeMissing(test selftest.Test, used usage) (found []Finding) {
	for p, by := range used {
		configured := false
		for _, name := range []string{p.name, by[0] + "/" + p.name} {
			_, asr := test.Recognizers[name]
			_, llm := test.Models[name]
			_, tts := test.Voices[name]
			configured = configured || map[string]bool{"asr": asr, "llm": llm, "tts": tts}[p.serves]
		}
		if !configured && p.name != "fake" { // servers without a fake provider start one
			found = append(found, Finding{
				"provider", Error, fmt.Sprintf("the agent %s of %s uses the %s, which is not configured", by[1], by[0], p),
				"configure it (docs/providers.md), or change speech of the agent",
			})
		}
	}
	slices.SortFunc(found, func(a, b Finding) int { return strings.Compare(a.Result, b.Result) })
	return found
}

// selectParts removes from a test the parts that no agent uses, unless none is published, and those whose key is a
// placeholder. It returns the unused ones.
func selectParts(test *selftest.Test, accounts map[string]endpoints.Endpoint, used usage) (unused []string) {
	drop := func(p part) bool {
		if len(used) > 0 && !used.has(p) {
			unused = append(unused, p.String())
			return true
		}
		return control.HasPlaceholder(string(accounts[p.account()].Key))
	}
	test.Recognizers = without("asr", test.Recognizers, drop)
	test.Models = without("llm", test.Models, drop)
	test.Voices = without("tts", test.Voices, drop)
	slices.Sort(unused)
	return unused
}

func without[T any](serves string, all map[string]T, drop func(part) bool) map[string]T {
	all = maps.Clone(all)
	maps.DeleteFunc(all, func(name string, _ T) bool { return drop(part{serves, name}) })
	return all
}

// judgeResults interprets the results of a test. Parts of an account that fail for the same reason have one finding.
func judgeResults(results []selftest.Result, accounts map[string]endpoints.Endpoint) (found []Finding) {
	slices.SortFunc(results, func(a, b selftest.Result) int { return strings.Compare(a.Name+a.Serves, b.Name+b.Serves) })
	type cause struct{ account, text string }
	failed := map[cause][]selftest.Result{}
	var order []cause
	for _, r := range results {
		p := part{r.Serves, r.Name}
		if r.Err == nil {
			found = append(found, Finding{"provider", OK, fmt.Sprintf("%s answers after %d ms", p, r.Latency.Milliseconds()), ""})
			continue
		}
		at := cause{p.account(), rootCause(r.Err).Error()}
		if failed[at] == nil {
			order = append(order, at)
		}
		failed[at] = append(failed[at], r)
	}
	for _, at := range order {
		var parts []string
		for _, r := range failed[at] {
			parts = append(parts, part{r.Serves, r.Name}.String())
		}
		err := failed[at][0].Err
		result := fmt.Sprintf("%s: %s", strings.Join(parts, ", "), oneLine(err))
		found = append(found, Finding{"provider", Error, result, providerFix(at.account, accounts[at.account], err)})
	}
	return found
}

// rootCause returns the first error of a network, or the innermost error.
func rootCause(err error) error {
	if network, ok := errors.AsType[*net.OpError](err); ok {
		return network
	}
	if unknownHost, ok := errors.AsType[*net.DNSError](err); ok {
		return unknownHost
	}
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return err
}

// providerFix says how to correct the error of a provider.
func providerFix(name string, e endpoints.Endpoint, err error) string {
	_, unknownHost := errors.AsType[*net.DNSError](err)
	_, network := errors.AsType[*net.OpError](err)
	again := fmt.Sprintf("; parley providers check %s tests it again", name)
	switch {
	case unknownHost && e.URL != "":
		return "correct the host in its URL, or the DNS server of this machine (/etc/resolv.conf)" + again
	case unknownHost:
		return "give this machine a DNS server that finds public names (/etc/resolv.conf)" + again
	case network || errors.Is(err, context.DeadlineExceeded):
		return "permit connections from this machine to it in the firewall, or correct its URL" + again
	default:
		return "correct its key and URL" + again
	}
}
