package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/metrics"
	"github.com/parley-voice/parley/control/tracing"
	"github.com/parley-voice/parley/control/webhook"
)

// telemetry measures and traces what the server does.
type telemetry struct {
	metrics *metrics.Metrics
	tracer  *tracing.Tracer // nil: traces are off
}

// openTraces opens the exporter of traces. Without PARLEY_OTLP_URL the tracer stays nil.
func (m *telemetry) openTraces(ctx context.Context, c config.Config, log *slog.Logger) (err error) {
	to := c.Traces
	if to.URL == "" {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	m.tracer, err = tracing.Open(ctx, tracing.Settings{
		URL: to.URL, Header: to.Header(), Sample: to.Sample, Node: cmp.Or(c.NodeName, host), Version: version, Log: log,
	})
	if err != nil {
		return configError{fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)}
	}
	return nil
}

// observeDelivery counts and traces an attempt to deliver a webhook.
func (m *telemetry) observeDelivery(a webhook.Attempt) {
	m.metrics.CountDelivery(a.State)
	m.tracer.Delivery(a)
}

// tracedAdmission traces the orders that it accepts.
type tracedAdmission struct {
	*admission.Controller
	tracer *tracing.Tracer
}

// Place implements calls.Admission.
func (t tracedAdmission) Place(ctx context.Context, orgID string, o admission.Order, also admission.InTx) (control.Call, error) {
	began := time.Now()
	c, err := t.Controller.Place(ctx, orgID, o, also)
	if err == nil {
		t.tracer.Order(ctx, c.ID, began)
	}
	return c, err
}

// PlaceWeb implements calls.Admission.
func (t tracedAdmission) PlaceWeb(
	ctx context.Context, orgID string, o admission.WebOrder, also func(context.Context, db.Querier, control.Call, admission.Ticket) error,
) (control.Call, admission.Ticket, error) {
	began := time.Now()
	c, ticket, err := t.Controller.PlaceWeb(ctx, orgID, o, also)
	if err == nil {
		t.tracer.Order(ctx, c.ID, began)
	}
	return c, ticket, err
}
