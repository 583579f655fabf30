import { type ErrorDetail, invalidBody } from '../../core/errors.ts';
import { mask, type Sealer } from '../../core/sealing.ts';
import type { SealedColumn } from '../../postgres/reseal.ts';
import { faultsOfHeaders } from '../../providers/tenant-headers.ts';

type Headers = Readonly<Record<string, string>>;

/** The headers of an agent's servers, by server name, in plain text. */
export type HeadersByServer = Readonly<Record<string, Headers>>;

interface ServerWithHeaders {
  readonly name: string;
  readonly url: string;
  readonly headers?: Headers | undefined;
}

/** The faults of a server's headers. `field`: their path in the body. */
export function faultsOfServerHeaders(headers: Headers, field: string): ErrorDetail[] {
  return faultsOfHeaders(headers, { field: `${field}.headers`, own: /^(?:mcp-|accept$|last-event-id$)/ });
}

/**
 * The headers to store for the servers of a body, and the paths of those that replace others. A mask keeps the stored
 * value if its server has the same name and address: a value is never sent to an address that it was not set for.
 * Throws validation_violation for any other mask. `stored` is undefined where no secret key decrypts it.
 */
export function takeHeaders(
  servers: readonly ServerWithHeaders[],
  before: { readonly servers: readonly ServerWithHeaders[]; readonly stored: HeadersByServer | undefined },
): { headers: HeadersByServer; replaced: string[] } {
  const faults: ErrorDetail[] = [];
  const replaced: string[] = [];
  const stored = new Map(Object.entries(before.stored ?? {}));

  const headers = servers.map(({ name, url, headers: sent = {} }, index): [string, Headers] => {
    const storedHeaders = new Map(Object.entries(stored.get(name) ?? {}));
    const former = before.servers.find((server) => server.name === name);
    const values = Object.entries(sent).map(([header, value]): [string, string] => {
      const field = `mcpServers.${index}.headers.${header}`;
      const current = storedHeaders.get(header);
      if (value !== mask) {
        if (current !== undefined && current !== value)
          replaced.push(`${field.slice(0, -header.length)}${escaped(header)}`);
        return [header, value];
      }
      const shown = new Map(Object.entries(former?.headers ?? {}));
      if (!shown.has(header))
        faults.push({ field, message: 'must be the value itself: this is the mask that responses show' });
      else if (former?.url !== url) faults.push({ field, message: 'must be re-entered for another url' });
      else if (current === undefined)
        faults.push({ field, message: 'can no longer be decrypted and must be re-entered' });
      return [header, current ?? ''];
    });
    return [name, Object.fromEntries(values)];
  });
  if (faults.length > 0) throw invalidBody(...faults);
  return { headers: Object.fromEntries(headers.filter(([, values]) => Object.keys(values).length > 0)), replaced };
}

/** A key in a path of a change entry. */
function escaped(key: string): string {
  return key.replaceAll(/[.\\]/g, '\\$&');
}

/** Binds headers to their agent: in another row they cannot be decrypted. */
function purposeOf(tenant: string, id: string): string {
  return `headers of tools ${tenant} ${id}`;
}

/** Null without any header. */
export function sealHeaders(sealer: Sealer, tenant: string, id: string, headers: HeadersByServer): Uint8Array | null {
  if (Object.keys(headers).length === 0) return null;
  return sealer.seal(Buffer.from(JSON.stringify(headers), 'utf8'), purposeOf(tenant, id));
}

/** Undefined if no secret key decrypts them. */
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
