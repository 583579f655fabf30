import { isIP } from 'node:net';
import { Fault } from './values.ts';

/** An address that a process listens on; port 0: any free port. */
export interface Listener {
  host: string;
  port: number;
}

/** Private addresses that may be called: a range, or a host (a name or an address) with its port. */
export type AllowedAddress =
  | { kind: 'range'; address: string; prefix: number }
  | { kind: 'host'; host: string; port: number };

/** A port on the host of the service, or `host:port`. */
export function parseListener(value: string, defaultHost: string): Listener | Fault {
  const [, host = defaultHost, digits = ''] = /^(?:(.+):)?(\d{1,5})$/.exec(value) ?? [];
  const port = Number(digits);
  if (digits === '' || port > 65535) return new Fault('must be a port from 0 to 65535, or host:port');
  return { host: host.replace(/^\[(.+)\]$/, '$1'), port };
}

export function parseProxies(value: string): string[] | Fault {
  if (value === 'none') return [];
  const proxies = value.split(',').map((proxy) => proxy.trim());
  const wrong = proxies.findIndex((proxy) => proxy !== 'loopback' && !((parseRange(proxy)?.prefix ?? 0) > 0));
  if (wrong === -1) return proxies;
  return new Fault(
    'must be a comma-separated list of addresses (10.1.2.3), ranges (10.0.0.0/8) and the word loopback, or none; ' +
      `number ${wrong + 1} is none of them`,
  );
}

export function parseAllowedAddresses(value: string): AllowedAddress[] | Fault {
  const allowed: AllowedAddress[] = [];
  for (const [index, part] of value.split(',').entries()) {
    const address = parseRange(part.trim()) ?? parseHost(part.trim());
    if (address === undefined) {
      return new Fault(
        'must be a list, with commas, of ranges (10.0.0.0/8), addresses (10.1.2.3) and hosts with a port ' +
          `(ollama:11434, [fd00::1]:8000); number ${index + 1} is none of them`,
      );
    }
    allowed.push(address);
  }
  return allowed;
}

/** Hosts as in a URL: `swift.example`, `swift.example:8080`. */
export function parseHosts(value: string): string[] | Fault {
  const hosts = value.split(',').map((part) => part.trim().toLowerCase());
  const wrong = hosts.findIndex((host) => !/^(?:[\w.-]+|\[[0-9a-f:]+\])(?::\d{1,5})?$/.test(host));
  if (wrong === -1) return hosts;
  return new Fault(
    `must be a list, with commas, of hosts (swift.example, swift.example:8080); number ${wrong + 1} is none`,
  );
}

/** Private addresses by tenant: `acme=10.0.0.0/8,acme=erp:8443,other=10.1.2.3`. */
export function parseAllowedOfTenants(value: string): ReadonlyMap<string, readonly AllowedAddress[]> | Fault {
  const tenants = new Map<string, AllowedAddress[]>();
  for (const [index, part] of value.split(',').entries()) {
    const [, tenant = '', address = ''] = /^([a-z][a-z0-9]{1,62})=(.+)$/.exec(part.trim()) ?? [];
    const allowed = parseRange(address) ?? parseHost(address);
    if (allowed === undefined) {
      return new Fault(
        'must be a list, with commas, of a tenant with a range (acme=10.0.0.0/8), an address (acme=10.1.2.3) or a host with ' +
          `a port (acme=erp:8443); number ${index + 1} is none of them`,
      );
    }
    tenants.set(tenant, [...(tenants.get(tenant) ?? []), allowed]);
  }
  return tenants;
}

function parseRange(part: string): (AllowedAddress & { kind: 'range' }) | undefined {
  const [, address = '', digits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(part) ?? [];
  const family = isIP(address);
  if (family === 0) return undefined;
  const maxPrefix = family === 4 ? 32 : 128;
  const prefix = digits === undefined ? maxPrefix : Number(digits);
  return prefix <= maxPrefix ? { kind: 'range', address, prefix } : undefined;
}

function parseHost(part: string): AllowedAddress | undefined {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([\w.-]+)):(\d{1,5})$/.exec(part) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host === undefined || port < 1 || port > 65535) return undefined;
  if (bracketed !== undefined && isIP(bracketed) !== 6) return undefined;
  return { kind: 'host', host: host.toLowerCase(), port };
}
