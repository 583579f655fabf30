import type { ErrorDetail } from '../../core/errors.ts';
import { mask } from '../../core/sealing.ts';
import { faultsOfServerHeaders } from './headers.ts';
import { type ApprovedTool, type McpServer, type McpServerInput, maxTools } from './schemas.ts';
import { faultOfToolName, type ToolOffer } from './tool-definition.ts';

/** The servers of a body as stored: with masks in place of headers, and each tool's previous state. */
export function shownServers(servers: readonly McpServerInput[], before: readonly McpServer[] = []): McpServer[] {
  return servers.map(({ name, url, headers = {}, tools = [] }) => {
    const former = before.find((server) => server.name === name && server.url === url)?.tools ?? [];
    return {
      name,
      url,
      headers: Object.fromEntries(Object.keys(headers).map((header) => [header, mask])),
      tools: tools.map(({ name: tool, sha256 }) => {
        const state = former.find((previous) => previous.name === tool && previous.sha256 === sha256)?.state;
        return { name: tool, sha256, ...(state && { state }) };
      }),
    };
  });
}

/** The faults of servers that the schema cannot find. */
export function faultsOfServers(servers: readonly McpServerInput[]): ErrorDetail[] {
  const names = new Set<string>();
  const faults = servers.flatMap(({ name, url, headers = {}, tools = [] }, index): ErrorDetail[] => {
    const at = `mcpServers.${index}`;
    const isTwice = names.has(name);
    names.add(name);
    const toolNames = new Set<string>();
    return [
      ...(isTwice ? [{ field: `${at}.name`, message: 'is repeated' }] : []),
      ...(URL.canParse(url) ? [] : [{ field: `${at}.url`, message: 'must be a URL' }]),
      ...faultsOfServerHeaders(headers, at),
      ...tools.flatMap(({ name: tool }, place) => {
        const message = faultOfToolName(name, tool) ?? (toolNames.has(tool) ? 'is repeated' : undefined);
        toolNames.add(tool);
        return message === undefined ? [] : [{ field: `${at}.tools.${place}.name`, message }];
      }),
    ];
  });
  const count = servers.reduce((sum, { tools = [] }) => sum + tools.length, 0);
  if (count > maxTools) faults.push({ field: 'mcpServers', message: `must have at most ${maxTools} tools together` });
  return faults;
}

/** Whether any tool of a server is approved. */
export function hasTools(servers: readonly Pick<McpServerInput, 'tools'>[] | null | undefined): boolean {
  return (servers ?? []).some(({ tools = [] }) => tools.length > 0);
}

/** A server of an agent with its tools compared to the offered ones. */
export function comparedServer(server: McpServer, { tools: offered, unreadable }: ToolOffer): McpServer {
  const tools = server.tools.map(({ name, sha256 }): ApprovedTool => {
    const now = offered.find((tool) => tool.name === name);
    if (now === undefined) {
      return { name, sha256, state: unreadable.some((tool) => tool.name === name) ? 'changed' : 'missing' };
    }
    return now.sha256 === sha256 && now.fault === undefined ? { name, sha256 } : { name, sha256, state: 'changed' };
  });
  return { ...server, tools };
}

/** Servers with the states of the compared tools; undefined if unchanged. A newly approved tool has no state. */
export function withStates(servers: readonly McpServer[], compared: readonly McpServer[]): McpServer[] | undefined {
  let differs = false;
  const marked = servers.map((server) => {
    const seen = compared.find(({ name, url }) => name === server.name && url === server.url);
    if (seen === undefined) return server;
    const tools = server.tools.map((tool) => {
      const found = seen.tools.find(({ name, sha256 }) => name === tool.name && sha256 === tool.sha256);
      differs ||= found !== undefined && found.state !== tool.state;
      return found ?? tool;
    });
    return { ...server, tools };
  });
  return differs ? marked : undefined;
}
