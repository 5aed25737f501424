package webhook

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// A delivered payload moves into a pack. The payloads of a call have almost the same text, so those of an endpoint are
// in one pack: a list of ids and a list of payloads. The delivery that was delivered last has it, because retention
// deletes the others first.

// packSQL selects the pack that has the payload of delivery d, or NULL.
const packSQL = "CASE WHEN d.packed_in IS NULL THEN d.packed ELSE (SELECT h.packed FROM webhook_deliveries h WHERE h.id = d.packed_in) END"

// pack moves the payload of a delivery that was just delivered into a pack, with those of earlier ones of its call. The
// caller has locked the endpoint.
func pack(ctx context.Context, tx pgx.Tx, endpointID string, d delivery) error {
	names, ids, payloads := []string{d.id}, [][]byte{[]byte(d.id)}, [][]byte{d.payload}
	earlier, err := db.Collect(ctx, tx, "packs", pgx.RowTo[[]byte],
		"SELECT packed FROM webhook_deliveries WHERE endpoint_id = $1 AND call_id = $2 AND packed IS NOT NULL", endpointID, d.callID)
	if err != nil {
		return err
	}
	for _, p := range earlier {
		had, texts, fault := readPack(p)
		if fault != nil {
			return fault
		}
		for i, id := range had {
			if string(id) != d.id {
				names, ids, payloads = append(names, string(id)), append(ids, id), append(payloads, texts[i])
			}
		}
	}
	all, err := db.Pack(ids, payloads)
	if err != nil {
		return err
	}
	_, err = db.Exec(ctx, tx, "pack", `
		UPDATE webhook_deliveries SET payload = '', packed = CASE WHEN id = $1 THEN $2::bytea END, packed_in = nullif($1, id)
		WHERE endpoint_id = $3 AND call_id = $4 AND id = ANY ($5)`, d.id, all, endpointID, d.callID, names)
	return err
}

// readPack returns the ids and the payloads of a pack.
func readPack(p []byte) (ids, payloads [][]byte, err error) {
	lists, err := db.Unpack(p)
	if err == nil && (len(lists) != 2 || len(lists[0]) != len(lists[1])) {
		err = fmt.Errorf("the pack has %d lists", len(lists))
	}
	if err != nil {
		return nil, nil, err
	}
	return lists[0], lists[1], nil
}

// unpack returns the payload of a delivery: the given one, or the one in the pack that packSQL selected.
func unpack(id string, payload, packed []byte) ([]byte, error) {
	if packed == nil {
		return payload, nil
	}
	ids, payloads, err := readPack(packed)
	if err != nil {
		return nil, err
	}
	n := slices.IndexFunc(ids, func(b []byte) bool { return string(b) == id })
	if n < 0 {
		return nil, fmt.Errorf("the pack does not have delivery %s", id)
	}
	return payloads[n], nil
}
