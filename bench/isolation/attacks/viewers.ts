import { quantile } from '../../figures.ts';
import { type Attack, changesOf, recordAll, repeatedly } from './attack.ts';

const viewers = 50;
const tokens = new Map<string, string[]>();
/** Milliseconds of the tenant's own calls beside its viewers. */
const own: number[] = [];

const reads = [
  'changes?q=type:update&size=50',
  'changes?q=entityId:p17+entity:product&page=3',
  'histogram?buckets=30&timeZone=Europe/Berlin',
  'facets?field=actor',
  'facets?field=path',
];

/**
 * 50 viewers of a part of the history, each with more requests at once than it has places, one in 40 for a file. Their
 * tenant reads and writes.
 */
export const attack: Attack = {
  row: 11,
  title: `${viewers} viewers of a tenant, 4 requests each at once`,

  fill: (db, tenant) => recordAll(db, tenant, changesOf(100_000)),

  async prepare({ tenant, call }) {
    await call(`/schema/${tenant}/custom-entities`, { method: 'POST', body: '{"id":"ITEM","name":{"en":"Item"}}' });
    const made = Array.from({ length: viewers }, async (_none, place) => {
      const q = `actor:"Person ${place % 10}"`;
      const body = JSON.stringify({ q, subject: `s${place}`, hide: ['card.*'], export: true });
      const response = await call(`/changelog/${tenant}/viewer-tokens`, { method: 'POST', body });
      return ((await response.json()) as { token: string }).token;
    });
    tokens.set(tenant, await Promise.all(made));
  },

  async run({ tenant, call, callOpen, count }, signal) {
    const look = repeatedly(4 * viewers, signal, async (place, turn) => {
      const isFile = (place + turn) % 40 === 0;
      const path = isFile ? 'changes' : reads[(place + turn) % reads.length];
      const authorization = `Bearer ${tokens.get(tenant)?.[place % viewers]}`;
      const response = await callOpen(`/viewer/${tenant}/${path}`, {
        headers: { authorization, accept: isFile ? 'text/csv' : 'application/json' },
      });
      await response.arrayBuffer();
      count(isFile ? `file ${response.status}` : response.status);
    });
    const work = repeatedly(2, signal, async (place, turn) => {
      const begun = performance.now();
      const response = await (place === 0
        ? call(`/changelog/${tenant}/changelogs?q=entity:product&page=${1 + (turn % 20)}`)
        : call(`/schema/${tenant}/custom-entities/ITEM/instances/i${turn % 20}`, {
            method: 'PUT',
            body: `{"n":${turn}}`,
          }));
      await response.arrayBuffer();
      own.push(performance.now() - begun);
      count(`${place === 0 ? 'own read' : 'own write'} ${response.status < 300 ? 'answered' : response.status}`);
      const slowest = `own calls over 2 s: ${own.filter((time) => time > 2_000).length}, slowest ${Math.round(quantile(own, 1) / 100) / 10} s`;
      if (turn % 50 === 0) console.info(slowest);
    });
    await Promise.all([look, work]);
  },

  fault(counts) {
    const refused = Object.keys(counts).filter((outcome) => /^own (?:read|write) \d/.test(outcome));
    return refused.length === 0 ? undefined : `its own calls: ${refused.join()}`;
  },
};
