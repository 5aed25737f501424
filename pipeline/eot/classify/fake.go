package classify

import (
	"encoding/json"
	"net/http"
	"time"
)

// A Fake plays a classifier by script, for tests and benches.
type Fake struct {
	P     float64
	Delay time.Duration
	// Fault is the status it answers with instead, if not 0.
	Fault int
	// Asked is told of every question, if not nil.
	Asked func(Question)
}

// ServeHTTP implements http.Handler.
func (f Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q Question
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if f.Asked != nil {
		f.Asked(q)
	}
	select {
	case <-time.After(f.Delay):
	case <-r.Context().Done():
		return
	}
	if f.Fault != 0 {
		w.WriteHeader(f.Fault)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(Answer{&f.P}) // who went away hears nothing
}
