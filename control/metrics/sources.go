package metrics

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/failover"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/pipeline/provider"
)

// Sources are the components that are read at each scrape.
type Sources struct {
	Failover  func() failover.Stats
	Live      *control.Live
	Free      func() int64 // free bytes for recordings; less than 0 if unknown
	Carriers  func() Carriers
	Clock     *mediaclock.Clock
	Transport *rtp.Transport
	Campaigns func() Campaigns
	Node      *control.Node
	Channels  *store.ChannelCounter
	Spool     func() recording.Content
	Backlog   func(ctx context.Context) (store.Backlog, error)
	Pools     map[string]*pgxpool.Pool // pools of database connections, by name
	Providers func() []provider.Status
	// Certificates returns when the server's certificates expire, by use.
	Certificates func() map[string]time.Time
	Spans        func() map[string]int64 // number of spans by result of their export
	Log          *slog.Logger
}

// Carriers holds the numbers of calls, trunk addresses and registrations, and of messages, connections and requests that failed.
type Carriers struct {
	Up, Dialing   int
	Addresses     map[string]int64 // number of proxy addresses of the trunks, by state
	Registrations map[string]int64 // number by state
	// Messages that were received but not processed.
	Dropped, Unreadable, Limited int64
	// Unaccepted counts connections that could not be accepted.
	Unaccepted int64
	// Foreign counts messages that name a call but do not come from an address of the call's trunk.
	Foreign int64
	Refused map[int]int64 // number of refused requests by status
}

// Register adds the sources. Call it only once, and then Run.
func (m *Metrics) Register(w Sources) {
	m.sampler = &sampler{read: w.Backlog, log: w.Log}
	m.registry.MustRegister(poolSources(w.Pools)...)
	m.registry.MustRegister(
		newCampaignCollector(w.Campaigns), newBacklogs(m.sampler), newProviders(w.Providers), newCertificates(w.Certificates),
		source[map[string]int64]{look: w.Spans, tallies: []tally[map[string]int64]{{
			prometheus.NewDesc("parley_trace_spans_total", "Spans of traced calls, by result of their export.", []string{"result"}, nil),
			prometheus.CounterValue, func(all map[string]int64) map[string]int64 { return all },
		}}},
		source[recording.Content]{look: w.Spool, all: spoolReadings()},
		source[mediaclock.Stats]{look: w.Clock.Stats, all: clockReadings()},
		source[failover.Stats]{look: w.Failover, all: failoverReadings()},
		source[rtp.Stats]{look: w.Transport.Stats, all: rtpReadings()},
		source[Sources]{func() Sources { return w }, []reading[Sources]{
			gauge("parley_calls_live", "Live calls of this node.", func(w Sources) float64 { return float64(w.Live.Count()) }),
			gauge("parley_recording_free_bytes", "Free bytes on the disk for recordings.", func(w Sources) float64 { return float64(w.Free()) }),
			gauge("parley_calls_max", "Maximum number of calls that this node runs.", func(w Sources) float64 { return float64(w.Node.Room().Max) }),
			gauge("parley_calls_room", "Calls that this node can start now.", func(w Sources) float64 { return float64(w.Node.Room().Free) }),
			gauge("parley_node_accepting", "1 if this node takes new calls.", func(w Sources) float64 { return truth(w.Node.Accepting()) }),
			count("parley_leases_lost_total", "Calls that ended because this node lost their lease.",
				func(w Sources) int64 { return w.Live.LostLeases() }),
			count("parley_attempts_settled_total", "Attempts of lost nodes that this node settled.",
				func(w Sources) int64 { return w.Node.SettledAttempts() }),
			count("parley_channel_counts_repaired_total", "Wrong counts of channels in use that this node corrected.",
				func(w Sources) int64 { return w.Channels.Repaired() }),
			gauge("parley_rtp_sessions", "Open media sessions.", func(w Sources) float64 { return float64(w.Transport.SessionCount()) }),
		}, []tally[Sources]{{
			prometheus.NewDesc("parley_calls_held", "1 for the reason why this node starts no call.", []string{"reason"}, nil),
			prometheus.GaugeValue, func(w Sources) map[string]int64 { return heldReasons(w.Node.Room().Hold) },
		}}},
		source[Carriers]{w.Carriers, []reading[Carriers]{
			gauge("parley_sip_legs", "Connected legs.", func(c Carriers) float64 { return float64(c.Up) }),
			gauge("parley_sip_dialling", "Calls being dialed.", func(c Carriers) float64 { return float64(c.Dialing) }),
			count("parley_sip_dropped_total", "SIP messages dropped before they were parsed.", func(c Carriers) int64 { return c.Dropped }),
			count("parley_sip_unreadable_total", "SIP messages that could not be parsed.", func(c Carriers) int64 { return c.Unreadable }),
			count("parley_sip_unaccepted_total", "Failures to accept a SIP connection, for example without free file descriptors.",
				func(c Carriers) int64 { return c.Unaccepted }),
			count("parley_sip_foreign_total", "SIP messages of calls from addresses that do not belong to the trunk.",
				func(c Carriers) int64 { return c.Foreign }),
			count("parley_sip_limited_total", "SIP messages dropped because their address sent too many.",
				func(c Carriers) int64 { return c.Limited }),
		}, []tally[Carriers]{
			{
				prometheus.NewDesc("parley_sip_refused_total", "SIP requests refused before processing, by status.", []string{"status"}, nil),
				prometheus.CounterValue, func(c Carriers) map[string]int64 { return refused(c.Refused) },
			},
			{
				prometheus.NewDesc("parley_sip_registrations", "Registrations, by state.", []string{"state"}, nil),
				prometheus.GaugeValue, func(c Carriers) map[string]int64 { return c.Registrations },
			},
			{
				prometheus.NewDesc("parley_sip_places", "Proxy addresses of trunks, by state: up, down or barred.", []string{"verdict"}, nil),
				prometheus.GaugeValue, func(c Carriers) map[string]int64 { return c.Addresses },
			},
		}},
	)
}

func spoolReadings() []reading[recording.Content] {
	return []reading[recording.Content]{
		gauge("parley_recordings_spooled", "Recordings on this node's disk.", func(c recording.Content) float64 { return float64(c.Files) }),
		gauge("parley_recordings_spooled_bytes", "Size of the recordings on this node's disk.",
			func(c recording.Content) float64 { return float64(c.Size) }),
		gauge("parley_recordings_spooled_oldest_seconds", "Time since the last write to the oldest recording on this node's disk.",
			func(c recording.Content) float64 { return c.Oldest.Seconds() }),
	}
}

// heldReasons returns all reasons; the value of the current one is 1.
func heldReasons(current control.Hold) map[string]int64 {
	all := map[string]int64{}
	for _, h := range []control.Hold{control.HoldStopping, control.HoldMaxCalls, control.HoldCPU, control.HoldLateMedia} {
		all[string(h)] = int64(truth(h == current))
	}
	return all
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func clockReadings() []reading[mediaclock.Stats] {
	return []reading[mediaclock.Stats]{
		gauge("parley_media_clock_worst_seconds", "Greatest lateness of the media clock.",
			func(s mediaclock.Stats) float64 { return s.Worst.Seconds() }),
		count("parley_media_clock_late_ticks_total", "Ticks that began more than 10 ms late.", func(s mediaclock.Stats) int64 { return s.Late }),
		count("parley_media_clock_skipped_ticks_total", "Ticks that were skipped.", func(s mediaclock.Stats) int64 { return s.Skipped }),
	}
}

func rtpReadings() []reading[rtp.Stats] {
	return []reading[rtp.Stats]{
		count("parley_rtp_sent_packets_total", "Packets sent.", func(s rtp.Stats) int64 { return s.Sent }),
		count("parley_rtp_unsent_packets_total", "Packets rejected by the kernel, or without a destination.",
			func(s rtp.Stats) int64 { return s.Unsent }),
		count("parley_rtp_received_packets_total", "Packets of audio, comfort noise or digits from peers.",
			func(s rtp.Stats) int64 { return s.Received }),
		count("parley_rtp_lost_packets_total", "Packets that did not arrive.", func(s rtp.Stats) int64 { return s.Lost }),
		count("parley_rtp_late_packets_total", "Packets that arrived too late.", func(s rtp.Stats) int64 { return s.Late }),
		count("parley_rtp_duplicate_packets_total", "Duplicate packets.", func(s rtp.Stats) int64 { return s.Duplicate }),
		count("parley_rtp_ignored_packets_total", "Packets from a source other than the peer.", func(s rtp.Stats) int64 { return s.Ignored }),
		count("parley_rtp_malformed_packets_total", "Packets that are not RTP, or too long.", func(s rtp.Stats) int64 { return s.Malformed }),
		count("parley_rtp_unknown_packets_total", "Packets of a payload type that was not negotiated.",
			func(s rtp.Stats) int64 { return s.Unknown }),
		count("parley_rtp_overflow_packets_total", "Packets dropped because the reader was too slow.",
			func(s rtp.Stats) int64 { return s.Overflow }),
		count("parley_srtp_unauthenticated_packets_total", "SRTP packets that are replayed or fail authentication.",
			func(s rtp.Stats) int64 { return s.Forged }),
		count("parley_rtp_concealed_frames_total", "Frames with concealed loss.", func(s rtp.Stats) int64 { return s.Concealed }),
		count("parley_rtp_underruns_total", "Frames that were not sent in time.", func(s rtp.Stats) int64 { return s.Underruns }),
		count("parley_rtp_resyncs_total", "Resynchronizations: a peer changed its stream.", func(s rtp.Stats) int64 { return s.Resynced }),
		count("parley_rtp_lost_keys_total", "DTMF keys dropped because the queue was full.", func(s rtp.Stats) int64 { return s.KeysLost }),
		count("parley_rtp_drift_frames_added_total", "Frames added because a peer's clock is slow.", func(s rtp.Stats) int64 { return s.Added }),
		count("parley_rtp_drift_frames_left_out_total", "Frames left out because a peer's clock is fast.",
			func(s rtp.Stats) int64 { return s.Skipped }),
		count("parley_rtcp_reports_sent_total", "Reports sent.", func(s rtp.Stats) int64 { return s.ReportsSent }),
		count("parley_rtcp_reports_received_total", "Reports from peers.", func(s rtp.Stats) int64 { return s.ReportsReceived }),
	}
}

func refused(by map[int]int64) map[string]int64 {
	n := map[string]int64{}
	for status, count := range by {
		n[statusName(status)] += count
	}
	return n
}
