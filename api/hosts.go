package api

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/control"
)

// Hosts answers 421 to requests with an unknown Host, as a protection against DNS rebinding. It
// always accepts IP addresses and localhost, because no other site has such an origin. It also
// accepts requests without a Host, which no browser sends, and health checks with any Host.
// Names may be hosts or URLs; ports are ignored.
func Hosts(h http.Handler, names ...string) http.Handler {
	accepted := []string{"localhost"}
	for _, name := range names {
		if u, err := url.Parse(name); err == nil && u.Host != "" {
			name = u.Host
		}
		if name = hostName(name); name != "" {
			accepted = append(accepted, name)
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := hostName(r.Host)
		_, err := netip.ParseAddr(name)
		if err == nil || name == "" || slices.Contains(accepted, name) || r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("X-Request-Id", control.NewID("req_", time.Now()))
		w.Header().Set("Cache-Control", "no-store")
		response.JSON(
			w,
			http.StatusMisdirectedRequest,
			response.Plain(
				http.StatusMisdirectedRequest,
				"Host not accepted; accepted: IP addresses, localhost, and the hosts of PARLEY_PUBLIC_URL and PARLEY_HOSTS",
			),
		)
	})
}

// hostName returns the host in lower case without the port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}
