package endpoints

import (
	"errors"
	"maps"
	"net"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/pipeline/asr"
	"github.com/parley-voice/parley/pipeline/llm"
	"github.com/parley-voice/parley/pipeline/provider"
	"github.com/parley-voice/parley/pipeline/safedial"
	"github.com/parley-voice/parley/pipeline/tts"
)

// A Registry holds the clients of all endpoints and replaces those whose settings change. It is
// safe for concurrent use. The owner must close it.
type Registry struct {
	client *http.Client
	// guarded and egress serve the endpoints of organizations that have a URL.
	guarded *http.Client
	egress  safedial.Rules
	builtIn *clients // clients of espeak and the fake providers
	current atomic.Pointer[provider.Clients]

	mu   sync.Mutex
	open map[endpointID]openEndpoint
}

// An openEndpoint is an endpoint with its clients.
type openEndpoint struct {
	Endpoint
	*clients
}

// Open creates the clients of a set, which must have passed Check. It does not connect. If an
// organization's endpoint has a URL, its clients connect only to the addresses that egress allows.
func (s Set) Open(egress safedial.Rules) *Registry {
	r := &Registry{
		client:  newClient((&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext, http.ProxyFromEnvironment),
		guarded: newClient(egress.Dial, nil),
		egress:  egress,
	}
	r.builtIn = newClients(r.client, nil)
	r.builtIn.Voices["espeak"] = tts.Espeak{}
	if s.Fake != "" {
		r.builtIn.Recognizers["fake"] = asr.Deepgram{URL: "ws://" + s.Fake + "/v1/listen"}
		r.builtIn.Models["fake"] = llm.OpenAI{URL: "http://" + s.Fake + "/v1", Client: r.client}
		r.builtIn.Voices["fake"] = tts.ElevenLabs{URL: "ws://" + s.Fake, Warm: r.builtIn.newPool(time.Minute)}
	}
	r.Update(s)
	return r
}

// Current implements provider.ClientSource.
func (r *Registry) Current() *provider.Clients { return r.current.Load() }

// Update replaces the endpoints by those of a set, which must have passed Check. Endpoints with
// unchanged settings keep their clients and connections. Update returns the IDs of the clients that
// were added, replaced or removed. Calls in progress keep the clients that they began with.
func (r *Registry) Update(s Set) (changed []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kinds, next := Kinds(), map[endpointID]openEndpoint{}
	for id, e := range s.all() {
		if old, ok := r.open[id]; ok && reflect.DeepEqual(old.Endpoint, e) {
			next[id] = old
			continue
		}
		opened := newClients(r.client, nil)
		if id.orgID != "" && e.URL != "" {
			opened = newClients(r.guarded, r.egress.Dial)
		}
		if k, ok := kinds[e.Kind]; ok {
			k.open(opened, id.name, e)
		} else {
			opened.Invalid = []string{id.name, id.name + fluxSuffix}
		}
		next[id] = openEndpoint{e, opened}
		changed = append(changed, opened.ids(id.orgID)...)
	}
	for id, old := range r.open {
		if next[id].clients != old.clients {
			changed = append(changed, old.ids(id.orgID)...)
			_ = old.close() // closes idle connections; calls in progress go on
		}
	}
	r.open = next
	r.current.Store(r.merged())
	slices.Sort(changed)
	return slices.Compact(changed)
}

// merged returns the clients of all endpoints.
func (r *Registry) merged() *provider.Clients {
	all := &newClients(nil, nil).Clients
	all.Organizations = map[string]*provider.Clients{}
	r.builtIn.copyTo(all)
	for id, e := range r.open {
		to := all
		if id.orgID != "" {
			if to = all.Organizations[id.orgID]; to == nil {
				to = &newClients(nil, nil).Clients
				all.Organizations[id.orgID] = to
			}
		}
		e.copyTo(to)
	}
	return all
}

func (p *clients) copyTo(to *provider.Clients) {
	maps.Copy(to.Recognizers, p.Recognizers)
	maps.Copy(to.Models, p.Models)
	maps.Copy(to.Voices, p.Voices)
	to.Invalid = append(to.Invalid, p.Invalid...)
}

// ids returns the endpoint IDs of the clients: an endpoint may have clients under several names.
func (p *clients) ids(orgID string) []string {
	var all []string
	names := slices.Concat(slices.Collect(maps.Keys(p.Recognizers)), slices.Collect(maps.Keys(p.Models)), slices.Collect(maps.Keys(p.Voices)))
	for _, name := range names {
		all = append(all, endpointID{orgID, name}.String())
	}
	return all
}

// close closes the idle connections that the endpoint shares with no other.
func (p *clients) close() error {
	var errs []error
	for _, c := range p.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Close closes all idle connections.
func (r *Registry) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	errs := []error{r.builtIn.close()}
	for _, e := range r.open {
		errs = append(errs, e.close())
	}
	r.client.CloseIdleConnections()
	r.guarded.CloseIdleConnections()
	return errors.Join(errs...)
}
