import type { Sealer } from '../../core/sealing.ts';
import { memberOf, parsed } from '../../providers/members.ts';
import type { ProviderName, ToolCall } from '../../providers/port.ts';

/** The vendor's id of a tool call, with its signature if it goes back to the provider that signed it. Undefined for a text that is no id. */
export type OpenToolCall = (id: string) => Pick<ToolCall, 'id' | 'signature'> | undefined;

const prefix = 'call_sealed_';

/**
 * Signatures of reasoning travel in the ids of tool calls, sealed: a client of this format keeps no others, and the vendor wants
 * them back unchanged. An id without a signature is the vendor's own.
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

/** `provider` is the one that is called now. Another vendor gets no signature. */
export function toolCallOpener(
  sealer: Sealer,
  { tenant, provider }: { tenant: string; provider: ProviderName },
): OpenToolCall {
  return (given) => {
    if (!given.startsWith(prefix)) return { id: given };
    const sealed = Buffer.from(given.slice(prefix.length), 'base64url');
    if (prefix + sealed.toString('base64url') !== given) return undefined;
    const opened = sealer.open(sealed, purposeOf(tenant));
    const content = opened && parsed(Buffer.from(opened).toString('utf8'));
    const id = memberOf(content, 'id');
    const signature = memberOf(content, 'signature');
    if (typeof id !== 'string') return undefined;
    const isOwn = memberOf(content, 'provider') === provider && typeof signature === 'string';
    return isOwn ? { id, signature } : { id };
  };
}

/** The name of a tenant has no blank. */
function purposeOf(tenant: string): string {
  return `tool call ${tenant}`;
}
