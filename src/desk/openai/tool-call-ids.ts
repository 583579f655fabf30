import type { Sealer } from '../../core/sealing.ts';
import { memberOf, parsed } from '../../providers/members.ts';
import type { ProviderName, ToolCall } from '../../providers/port.ts';

/** The vendor's id of a tool call, with its signature if the same provider is called. Undefined for a malformed id. */
export type OpenToolCall = (id: string) => Pick<ToolCall, 'id' | 'signature'> | undefined;

const prefix = 'call_sealed_';

/**
 * Carries the signatures of reasoning, sealed, in the ids of tool calls: clients of this format keep nothing else, and
 * the vendor requires them back unchanged. An id without a signature is the vendor's own.
 */
export function sealToolCallId(
  sealer: Sealer,
  { tenant, provider }: { tenant: string; provider: ProviderName },
  { id, signature }: Pick<ToolCall, 'id' | 'signature'>,
): string {
  if (signature === undefined) return id;
  const sealed = sealer.seal(Buffer.from(JSON.stringify({ id, provider, signature })), purposeOf(tenant));
  return prefix + Buffer.from(sealed).toString('base64url');
}

/** `provider` is the one called now. Another vendor's signature is dropped. */
export function toolCallOpener(
  sealer: Sealer,
  { tenant, provider }: { tenant: string; provider: ProviderName },
): OpenToolCall {
  return (text) => {
    if (!text.startsWith(prefix)) return { id: text };
    const sealed = Buffer.from(text.slice(prefix.length), 'base64url');
    if (prefix + sealed.toString('base64url') !== text) return undefined;
    const opened = sealer.open(sealed, purposeOf(tenant));
    const content = opened && parsed(Buffer.from(opened).toString('utf8'));
    const id = memberOf(content, 'id');
    const signature = memberOf(content, 'signature');
    if (typeof id !== 'string') return undefined;
    const isOwn = memberOf(content, 'provider') === provider && typeof signature === 'string';
    return isOwn ? { id, signature } : { id };
  };
}

/** A tenant's name contains no blank. */
function purposeOf(tenant: string): string {
  return `tool call ${tenant}`;
}
