import { hash } from 'node:crypto';
import { type Caller, type Credentials, callerOf } from '../../http/credentials.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { addCounts, type CountingPool, TenantCounter } from '../../postgres/tenants/tenant-counter.ts';

/** Who reads. */
type Reader = Pick<Credentials, 'tenant' | 'clientId' | 'clientName' | 'onBehalfOf' | 'person'>;

/** The reads of one person, client, key or grant in one hour. */
interface ReadsOfHour extends Reader {
  /** The start of the hour, in milliseconds since 1970. */
  readonly hour: number;
  /** The number of requests by kind. */
  readonly kinds: Readonly<Record<string, number>>;
  /** Of the last request. */
  readonly address?: string | undefined;
  readonly program?: string | undefined;
}

/** An answered read of the history. */
interface AnsweredRead extends Reader {
  readonly kind: string;
  /** Undefined: unknown or not stored. */
  readonly caller?: Caller | undefined;
}

/** Counts reads of the history per hour. */
export interface CountedReads {
  count(read: AnsweredRead): void;
  /** Stores the counts so far. */
  store(): Promise<void>;
  /** Stores the remaining counts. Call it when no request is running. */
  close(): Promise<void>;
}

export function createCountedReads(
  pool: CountingPool,
  { now, onError }: { now: () => number; onError: (error: unknown) => void },
): CountedReads {
  const counter = new TenantCounter<ReadsOfHour>({
    keyOf: (reads) => `${reads.tenant} ${idOf(reads)}`,
    sum: (earlier, later) => ({
      ...later,
      kinds: sumOf(earlier.kinds, later.kinds),
      address: later.address ?? earlier.address,
      program: later.address === undefined ? earlier.program : later.program,
    }),
    add: (counted) => addReads(pool, counted),
    onError,
  });
  return {
    count({ kind, caller, ...reader }) {
      const hour = Math.floor(now() / hourLength) * hourLength;
      counter.count({ ...reader, hour, kinds: { [kind]: 1 }, ...caller });
    },
    store: () => counter.store(),
    close: () => counter.close(),
  };
}

function sumOf(counts: ReadsOfHour['kinds'], added: ReadsOfHour['kinds']): ReadsOfHour['kinds'] {
  const total = { ...counts };
  for (const [kind, count] of Object.entries(added)) total[kind] = (total[kind] ?? 0) + count;
  return total;
}

/**
 * Starts with the time, as the ids of other accesses. A person has a client per session but one row; a program that acts
 * for them has its own.
 */
function idOf({ hour, clientId, onBehalfOf, person }: ReadsOfHour): string {
  const who = person === undefined || onBehalfOf !== undefined ? [clientId] : [person.issuer, person.subject];
  const rest = hash('sha256', JSON.stringify(who)).slice(0, 32);
  return `${(hour * 1_000).toString(16).padStart(14, '0')}-read-${rest}`;
}

/** Skips deleted tenants. */
async function addReads(pool: CountingPool, counted: readonly ReadsOfHour[]): Promise<void> {
  await addCounts(pool, {
    name: 'access_reads_add',
    // Every writer uses the same order, to avoid deadlocks.
    text: `
      insert into access_event as known (tenant, id, at, kind, client, name, issuer, subject, details, count, address, program,
          on_behalf_of)
        select t.tenant, r.id, r.at, 'read', r.client, r.name, r.issuer, r.subject, r.kinds::json, r.count, r.address, r.program,
            r.on_behalf_of
          from unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[],
              $10::text[], $11::text[], $12::text[])
            as r (tenant, id, at, client, name, issuer, subject, kinds, count, address, program, on_behalf_of)
          join tenant t on t.tenant = r.tenant
          order by t.tenant, r.id
        on conflict (tenant, id) do update set
          details = access_kinds_add(known.details, excluded.details),
          count = known.count + excluded.count,
          address = coalesce(excluded.address, known.address),
          program = case when excluded.address is null then known.program else excluded.program end`,
    values: [
      counted.map(({ tenant }) => tenant),
      counted.map(idOf),
      counted.map(({ hour }) => new Date(hour)),
      counted.map(({ clientId }) => clientId),
      counted.map(({ clientName }) => clientName),
      counted.map(({ person }) => person?.issuer ?? null),
      counted.map(({ person }) => person?.subject ?? null),
      counted.map(({ kinds }) => JSON.stringify(kinds)),
      counted.map(({ kinds }) => Object.values(kinds).reduce((sum, count) => sum + count, 0)),
      counted.map(({ address }) => address ?? null),
      counted.map(({ program }) => program ?? null),
      counted.map(({ onBehalfOf }) => onBehalfOf ?? null),
    ],
  });
}

const hourLength = 3_600_000;

/** Counts answered requests that read a history. Call it before routes are registered. */
export function countReads(app: HttpServer, reads: Pick<CountedReads, 'count'>): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { verifiedCredentials: credentials } = request;
    const kind = kindOfRead(request.method, request.routeOptions.url ?? '');
    if (credentials !== null && kind !== undefined && reply.statusCode < 400) {
      const { tenant, clientId, clientName, onBehalfOf, person, viewer } = credentials;
      // The user of a viewer token is a customer of the client, so the address is not the client's.
      const caller = viewer === undefined ? callerOf(request) : undefined;
      reads.count({ tenant, clientId, clientName, onBehalfOf, person, kind, caller });
    }
    done();
  });
}

/**
 * What a request reads, as its path names it: `changelogs`, `histogram`, `mcp`, `viewer`; undefined unless it reads a
 * history.
 * @example kindOfRead('POST', '/changelog/:tenant/changelogs/search'); // 'changelogs'
 */
export function kindOfRead(method: string, route: string): string | undefined {
  const [, room = '', , part = ''] = route.split('/');
  if (room === 'mcp') return method === 'POST' ? 'mcp' : undefined;
  const reads = method === 'GET' || method === 'HEAD' || (method === 'POST' && route.endsWith('/search'));
  if (!reads) return undefined;
  if (room === 'viewer') return 'viewer';
  return room === 'changelog' ? part : undefined;
}
