package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/media/pace"
	"github.com/parley-voice/parley/media/rtp"
)

// Watched are those who count for themselves.
type Watched struct {
	Live      *control.Live
	Carriers  func() Carriers
	Clock     *pace.Clock
	Transport *rtp.Transport
	Campaigns func() Campaigns
}

// Carriers is how it stands with them.
type Carriers struct {
	Up, Dialling  int
	Places        map[string]int64 // addresses of trunks, by verdict
	Registrations map[string]int64 // by state
	// Messages that came in and were not dealt with.
	Dropped, Unreadable, Limited int64
	// Unaccepted are the times that no connection could be accepted.
	Unaccepted int64
	Refused    map[int]int64 // by status
}

// Watch has what they count read at each scrape. It must be called once.
func (m *Metrics) Watch(w Watched) {
	m.registry.MustRegister(
		newCampaigning(w.Campaigns),
		source[pace.Stats]{look: w.Clock.Stats, all: clockReadings()},
		source[rtp.Stats]{look: w.Transport.Stats, all: rtpReadings()},
		source[Watched]{look: func() Watched { return w }, all: []reading[Watched]{
			gauge("parley_calls_live", "Calls of this node that are not over.", func(w Watched) float64 { return float64(w.Live.Count()) }),
			gauge("parley_rtp_sessions", "Media sessions that are open.", func(w Watched) float64 { return float64(w.Transport.Open()) }),
		}},
		source[Carriers]{w.Carriers, []reading[Carriers]{
			gauge("parley_sip_legs", "Legs that are up.", func(c Carriers) float64 { return float64(c.Up) }),
			gauge("parley_sip_dialling", "Calls that are being dialled.", func(c Carriers) float64 { return float64(c.Dialling) }),
			count("parley_sip_dropped_total", "Messages dropped unread.", func(c Carriers) int64 { return c.Dropped }),
			count("parley_sip_unreadable_total", "Messages that could not be read.", func(c Carriers) int64 { return c.Unreadable }),
			count("parley_sip_unaccepted_total", "Times that no connection of SIP could be accepted, as where files run out.", func(c Carriers) int64 { return c.Unaccepted }),
			count("parley_sip_limited_total", "Messages of addresses that sent too many.", func(c Carriers) int64 { return c.Limited }),
		}, []tally[Carriers]{
			{
				prometheus.NewDesc("parley_sip_refused_total", "Requests refused before they were dealt with, by status.", []string{"status"}, nil),
				prometheus.CounterValue, func(c Carriers) map[string]int64 { return refused(c.Refused) },
			},
			{
				prometheus.NewDesc("parley_sip_registrations", "Registrations that are kept, by state.", []string{"state"}, nil),
				prometheus.GaugeValue, func(c Carriers) map[string]int64 { return c.Registrations },
			},
			{
				prometheus.NewDesc("parley_sip_places", "Addresses of trunks, by what they are good for.", []string{"verdict"}, nil),
				prometheus.GaugeValue, func(c Carriers) map[string]int64 { return c.Places },
			},
		}},
	)
}

func clockReadings() []reading[pace.Stats] {
	return []reading[pace.Stats]{
		gauge("parley_media_clock_worst_seconds", "The greatest lateness of the media clock.", func(s pace.Stats) float64 { return s.Worst.Seconds() }),
		count("parley_media_clock_late_ticks_total", "Ticks that began more than a tick late.", func(s pace.Stats) int64 { return s.Late }),
		count("parley_media_clock_skipped_ticks_total", "Ticks that were skipped.", func(s pace.Stats) int64 { return s.Skipped }),
	}
}

func rtpReadings() []reading[rtp.Stats] {
	return []reading[rtp.Stats]{
		count("parley_rtp_sent_packets_total", "Packets sent.", func(s rtp.Stats) int64 { return s.Sent }),
		count("parley_rtp_unsent_packets_total", "Packets that the kernel did not take, or that had nowhere to go.", func(s rtp.Stats) int64 { return s.Unsent }),
		count("parley_rtp_received_packets_total", "Packets of audio, comfort noise or digits from parties.", func(s rtp.Stats) int64 { return s.Received }),
		count("parley_rtp_lost_packets_total", "Packets that never came.", func(s rtp.Stats) int64 { return s.Lost }),
		count("parley_rtp_late_packets_total", "Packets that came too late.", func(s rtp.Stats) int64 { return s.Late }),
		count("parley_rtp_duplicate_packets_total", "Packets that came twice.", func(s rtp.Stats) int64 { return s.Duplicate }),
		count("parley_rtp_ignored_packets_total", "Packets from another source than the party.", func(s rtp.Stats) int64 { return s.Ignored }),
		count("parley_rtp_malformed_packets_total", "Packets that are not RTP, or longer than any.", func(s rtp.Stats) int64 { return s.Malformed }),
		count("parley_rtp_unknown_packets_total", "Packets of a payload type that was not agreed on.", func(s rtp.Stats) int64 { return s.Unknown }),
		count("parley_rtp_overflow_packets_total", "Packets dropped because their reader slept.", func(s rtp.Stats) int64 { return s.Overflow }),
		count("parley_srtp_unauthenticated_packets_total", "Packets repeated, or under another key than the party's.", func(s rtp.Stats) int64 { return s.Forged }),
		count("parley_rtp_concealed_frames_total", "Frames with holes in them.", func(s rtp.Stats) int64 { return s.Concealed }),
		count("parley_rtp_underruns_total", "Frames that were not sent in time.", func(s rtp.Stats) int64 { return s.Underruns }),
		count("parley_rtp_resyncs_total", "New time lines: a party changed its stream.", func(s rtp.Stats) int64 { return s.Resynced }),
		count("parley_rtp_lost_keys_total", "Keys that nobody took.", func(s rtp.Stats) int64 { return s.KeysLost }),
		count("parley_rtp_drift_frames_added_total", "Frames added because a party's clock is slow.", func(s rtp.Stats) int64 { return s.Added }),
		count("parley_rtp_drift_frames_left_out_total", "Frames left out because a party's clock is fast.", func(s rtp.Stats) int64 { return s.LeftOut }),
		count("parley_rtcp_reports_sent_total", "Reports sent.", func(s rtp.Stats) int64 { return s.Reports }),
		count("parley_rtcp_reports_received_total", "Reports from parties.", func(s rtp.Stats) int64 { return s.Reported }),
	}
}

func refused(by map[int]int64) map[string]int64 {
	n := map[string]int64{}
	for status, count := range by {
		n[statusName(status)] += count
	}
	return n
}
