-- +goose Up
-- The headers of tools leave the definitions of agents, for a column that is
-- sealed: a list with the headers of each tool. Whoever opens the database next
-- seals what stands here.
UPDATE agents SET
    secrets = (SELECT json_agg(coalesce(t -> 'headers', '{}') ORDER BY n)::text FROM jsonb_array_elements(draft -> 'tools') WITH ORDINALITY AS x (t, n)),
    draft = jsonb_set(draft, '{tools}', (SELECT jsonb_agg(t - 'headers' ORDER BY n) FROM jsonb_array_elements(draft -> 'tools') WITH ORDINALITY AS x (t, n)))
WHERE draft @? '$.tools[*].headers';
UPDATE agent_versions SET
    secrets = (SELECT json_agg(coalesce(t -> 'headers', '{}') ORDER BY n)::text FROM jsonb_array_elements(definition -> 'tools') WITH ORDINALITY AS x (t, n)),
    definition = jsonb_set(definition, '{tools}', (SELECT jsonb_agg(t - 'headers' ORDER BY n) FROM jsonb_array_elements(definition -> 'tools') WITH ORDINALITY AS x (t, n)))
WHERE definition @? '$.tools[*].headers';
