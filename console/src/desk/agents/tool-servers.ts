import type { Agent, AgentInput, McpTools } from '@annals/client';
import { type DraftHeader, draftHeaders } from '../../components/forms.tsx';
import { mask } from '../../data/json-editor/document-text.ts';

export type ToolServer = NonNullable<Agent['mcpServers']>[number];
export type OfferedTool = McpTools['tools'][number];

/** A server of tools as it is being written. */
export interface ServerDraft {
  readonly name: string;
  readonly url: string;
  readonly headers: readonly DraftHeader[];
}

export const emptyServer: ServerDraft = { name: '', url: '', headers: [] };

export function draftOfServer({ name, url, headers }: ToolServer): ServerDraft {
  return { name, url, headers: draftHeaders(headers) };
}

export function serversOf(agent: Agent): readonly ToolServer[] {
  return agent.mcpServers ?? [];
}

/** The tool of the history belongs to the agent, or any other that it may have. */
export function readsHistory({ nativeTools }: Agent): boolean {
  return nativeTools.length > 0;
}

/** What is sent for an agent with these servers. The rest of the agent stays as it is. */
export function withServers(agent: Agent, servers: readonly ToolServer[], more: Partial<AgentInput> = {}): AgentInput {
  return { ...(agent as AgentInput), mcpServers: [...servers], ...more };
}

/** The servers with one that was written, in the place of `former`. The approved tools stay where its address does. */
export function servedBy(
  servers: readonly ToolServer[],
  draft: ServerDraft,
  former: ToolServer | undefined,
): ToolServer[] {
  const { name, url } = draft;
  const headers = Object.fromEntries(
    draft.headers.map(({ name: header, value, isStored }) => [header, value === '' && isStored ? mask : value]),
  );
  const written = { name, url, headers, tools: former?.url === url ? former.tools : [] };
  return former === undefined ? [...servers, written] : servers.map((server) => (server === former ? written : server));
}

/**
 * The servers with these tools of one of them approved, as it offers them now. A tool that it does not offer stays as
 * it is.
 */
export function approving(
  servers: readonly ToolServer[],
  { server: name, tools }: McpTools,
  chosen: ReadonlySet<string>,
): ToolServer[] {
  return servers.map((server) => {
    if (server.name !== name) return server;
    const approved = tools
      .filter((tool) => chosen.has(tool.name))
      .flatMap((tool) => {
        const sha256 = tool.sha256 ?? tool.approved?.sha256;
        return sha256 === undefined ? [] : [{ name: tool.name, sha256 }];
      });
    return { ...server, tools: approved };
  });
}

/** Tools that are ticked at first: what is approved and has not changed. A changed one must be approved again. */
export function ticked({ tools }: McpTools): ReadonlySet<string> {
  return new Set(tools.filter(({ state }) => state === 'approved' || state === 'missing').map(({ name }) => name));
}

/** Bytes that the chosen tools take of each request to the model beyond what it has room for. */
export function bytesBeyondRoom({ tools, room }: McpTools, chosen: ReadonlySet<string>): number {
  const taken = tools.filter(({ name }) => chosen.has(name)).reduce((sum, { bytes = 0 }) => sum + bytes, 0);
  return taken === 0 ? 0 : Math.max(0, taken - room);
}

/** The faults of a server, shown while typing. The service has the last word. */
export function faultsOfServer(draft: ServerDraft, others: readonly ToolServer[]): { name?: string; url?: string } {
  const address = URL.parse(draft.url);
  const isUrl = address !== null && /^https?:$/.test(address.protocol) && address.search === '' && address.hash === '';
  const name = !/^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$/.test(draft.name)
    ? 'Letters, digits and hyphens, such as docs.'
    : draft.name.length > 32
      ? 'At most 32 characters.'
      : others.some((server) => server.name === draft.name)
        ? 'The agent has a server of this name.'
        : undefined;
  const url = isUrl ? undefined : 'Write a URL that begins with http:// or https://, without query and fragment.';
  return { ...(name !== undefined && { name }), ...(url !== undefined && { url }) };
}
