import { LRUCache } from 'lru-cache';
import { AnnalsError } from '../../core/errors.ts';
import { type BoundedResponse, type HttpClient, NoResponse } from '../../outbound/http-client.ts';
import { type Program, ProgramFault, readMetadata } from './programs.ts';

/** Of a document: milliseconds and bytes. */
export const documentLimits = { time: 5_000, bytes: 5 * 1_024 };
/** Milliseconds for which a document, or that there is none, is remembered, and in which the limits below count. */
const memory = 60_000;
/** Requests a minute for the programs that one person is asked about. */
export const documentsOfPerson = 10;
const maxEntries = 10_000;

/** Programs whose client id is the address of their metadata document. */
export interface MetadataDocuments {
  /**
   * Reads the document. Throws validation_violation if it is none of this program, and rate_limit_exceeded beyond one
   * request a minute to a host, and ten for a person.
   */
  read(clientId: string, holder: string): Promise<Program>;
}

/** Whether a client id is an address, which only a signed-in person's page has fetched. */
export function isDocumentAddress(clientId: string): boolean {
  if (!/^https:\/\/[!-~]+$/.test(clientId) || clientId.length > 500 || /[\\#]/.test(clientId)) return false;
  const url = URL.parse(clientId);
  // As it is written, so that a person is shown the host that is asked.
  return url !== null && url.username === '' && url.password === '' && url.pathname !== '/' && url.href === clientId;
}

interface Known {
  readonly reading: Promise<Program>;
  readonly until: number;
}

export function createMetadataDocuments({
  client,
  schemes,
  elapsed,
}: {
  /** Connects to public addresses alone. */
  client: Pick<HttpClient, 'send'>;
  schemes: readonly string[];
  /** Milliseconds of a monotonic clock. */
  elapsed: () => number;
}): MetadataDocuments {
  const known = new LRUCache<string, Known>({ maxSize: maxEntries, sizeCalculation: () => 1 });
  const hosts = new LRUCache<string, number>({ maxSize: maxEntries, sizeCalculation: () => 1 });
  const people = new LRUCache<string, readonly number[]>({ maxSize: maxEntries, sizeCalculation: () => 1 });

  function count(host: string, holder: string): void {
    const now = elapsed();
    const ofHost = hosts.get(host);
    if (ofHost !== undefined && now - ofHost < memory) throw tooMany(memory - (now - ofHost));
    const recent = (people.get(holder) ?? []).filter((at) => now - at < memory);
    const [oldest = now] = recent;
    if (recent.length >= documentsOfPerson) throw tooMany(memory - (now - oldest));
    hosts.set(host, now);
    people.set(holder, [...recent, now]);
  }

  async function fetchProgram(clientId: string): Promise<Program> {
    const headers = { accept: 'application/json', 'user-agent': 'Annals' };
    const sending = client.send(new URL(clientId), { method: 'GET', headers }, documentLimits);
    const response = await sending.catch((error: unknown) => {
      throw error instanceof NoResponse ? refused('could not be read') : error;
    });
    const metadata = contentOf(response);
    if ((metadata as { client_id?: unknown } | null)?.client_id !== clientId)
      throw refused('has another client_id than its address');
    try {
      return { clientId, ...readMetadata(metadata, schemes) };
    } catch (error) {
      throw error instanceof ProgramFault ? refused(`has a fault: ${error.message}`) : error;
    }
  }

  return {
    async read(clientId, holder) {
      const now = elapsed();
      const before = known.get(clientId);
      if (before !== undefined && before.until > now) return await before.reading;
      count(new URL(clientId).host, holder);
      const reading = fetchProgram(clientId);
      reading.catch(() => {});
      known.set(clientId, { reading, until: now + memory });
      return await reading;
    },
  };
}

function contentOf({ status, headers, body, cut }: BoundedResponse): unknown {
  if (status !== 200) throw refused(`was answered with the status ${status}`);
  if (cut === 'bytes') throw refused(`is longer than ${documentLimits.bytes} bytes`);
  if (cut !== undefined) throw refused('could not be read');
  if (!/^application\/(?:[\w.+-]+\+)?json\b/i.test(headers['content-type'] ?? '')) throw refused('is not JSON');
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw refused('is not JSON');
  }
}

function refused(fault: string): AnnalsError {
  return new AnnalsError('validation_violation', `The document that describes the program ${fault}.`);
}

function tooMany(wait: number): AnnalsError {
  return new AnnalsError(
    'rate_limit_exceeded',
    'Too many programs are described by this host, or were asked about in this session. Try it again in a minute.',
    { headers: { 'Retry-After': String(Math.ceil(wait / 1_000)) } },
  );
}
