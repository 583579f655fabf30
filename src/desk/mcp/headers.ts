import { type ErrorDetail, invalidBody } from '../../core/errors.ts';
import { mask } from '../../core/mask.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { SealedColumn } from '../../postgres/reseal.ts';
import { faultsOfHeaders } from '../../providers/tenant-headers.ts';

type Headers = Readonly<Record<string, string>>;

/** The headers of an agent's servers, by the name of the server. Plain text. */
export type HeadersByServer = Readonly<Record<string, Headers>>;

interface ServerWithHeaders {
  readonly name: string;
  readonly url: string;
  readonly headers?: Headers | undefined;
}

/** What is wrong with the headers of a server, whose place in the body is `field`. */
export function faultsOfServerHeaders(headers: Headers, field: string): ErrorDetail[] {
  return faultsOfHeaders(headers, { field: `${field}.headers`, own: /^(?:mcp-|accept$|last-event-id$)/ });
}

/**
 * The headers that are stored for the servers of a body, and the paths of those that take the place of others. A mask stands for the
 * stored value, if its server has the same name and address as then: Annals never sends a value to an address that it was not given
 * for. Throws validation_violation for any other mask. `stored` is undefined where no secret key opens what is stored.
 */
export function takeHeaders(
  servers: readonly ServerWithHeaders[],
  before: { readonly servers: readonly ServerWithHeaders[]; readonly stored: HeadersByServer | undefined },
): { headers: HeadersByServer; replaced: string[] } {
  const faults: ErrorDetail[] = [];
  const replaced: string[] = [];
  const stored = new Map(Object.entries(before.stored ?? {}));

  const headers = servers.map(({ name, url, headers: given = {} }, index): [string, Headers] => {
    const known = new Map(Object.entries(stored.get(name) ?? {}));
    const former = before.servers.find((server) => server.name === name);
    const taken = Object.entries(given).map(([header, value]): [string, string] => {
      const field = `mcpServers.${index}.headers.${header}`;
      const kept = known.get(header);
      if (value !== mask) {
        if (kept !== undefined && kept !== value) replaced.push(`${field.slice(0, -header.length)}${escaped(header)}`);
        return [header, value];
      }
      const shown = new Map(Object.entries(former?.headers ?? {}));
      if (!shown.has(header))
        faults.push({ field, message: 'must be the value itself: this is the mask that answers show' });
      else if (former?.url !== url) faults.push({ field, message: 'must be given anew for another url' });
      else if (kept === undefined) faults.push({ field, message: 'cannot be read any more, and must be given anew' });
      return [header, kept ?? ''];
    });
    return [name, Object.fromEntries(taken)];
  });
  if (faults.length > 0) throw invalidBody(...faults);
  return { headers: Object.fromEntries(headers.filter(([, given]) => Object.keys(given).length > 0)), replaced };
}

/** A key in a path of a change entry. */
function escaped(key: string): string {
  return key.replaceAll(/[.\\]/g, '\\$&');
}

/** Binds headers to their agent. In another row they cannot be decrypted. */
function purposeOf(tenant: string, id: string): string {
  return `headers of tools ${tenant} ${id}`;
}

/** Returns null where there is nothing to keep. */
export function sealHeaders(sealer: Sealer, tenant: string, id: string, headers: HeadersByServer): Uint8Array | null {
  if (Object.keys(headers).length === 0) return null;
  return sealer.seal(Buffer.from(JSON.stringify(headers), 'utf8'), purposeOf(tenant, id));
}

/** Returns undefined where none of the secret keys decrypts them. */
export function openHeaders(
  sealer: Sealer,
  tenant: string,
  id: string,
  sealed: Uint8Array | null,
): HeadersByServer | undefined {
  if (sealed === null) return {};
  const opened = sealer.open(sealed, purposeOf(tenant, id));
  return opened && JSON.parse(Buffer.from(opened).toString('utf8'));
}

export const sealedToolHeaders: SealedColumn = {
  table: 'agent',
  column: 'sealed_headers',
  keys: ['tenant', 'id'],
  purposeOf: ({ tenant, id }) => purposeOf(String(tenant), String(id)),
};
