import { execFileSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const installed = '/var/lib/lemonldap-ng/conf/lmConf-1.json';

export interface RelyingParty {
  readonly issuer: string;
  readonly clientSecret: string;
  /** The public address of Annals. */
  readonly baseUrl: string;
}

/** Writes the portal of LemonLDAP::NG with its demonstration accounts and Annals as a relying party. Returns its environment and program. */
export async function writePortal(folder: string, { issuer, clientSecret, baseUrl }: RelyingParty) {
  const at = (name: string) => join(folder, name);
  for (const name of ['conf', 'sessions', 'psessions', 'cache']) await mkdir(at(name), { recursive: true });
  execFileSync('openssl', ['genrsa', '-out', at('key.pem'), '2048'], { stdio: 'ignore' });
  execFileSync('openssl', ['rsa', '-in', at('key.pem'), '-pubout', '-out', at('pub.pem')], { stdio: 'ignore' });
  const sessions = (name: string) => ({ Directory: at(name), LockDirectory: at(name) });
  const configuration = {
    ...JSON.parse(await readFile(installed, 'utf8')),
    portal: issuer,
    domain: 'localhost',
    securedCookie: 0,
    authentication: 'Demo',
    userDB: 'Same',
    requireToken: 0,
    globalStorage: 'Apache::Session::File',
    globalStorageOptions: {
      ...sessions('sessions'),
      generateModule: 'Lemonldap::NG::Common::Apache::Session::Generate::SHA256',
    },
    persistentStorage: 'Apache::Session::File',
    persistentStorageOptions: sessions('psessions'),
    issuerDBOpenIDConnectActivation: 1,
    oidcServiceMetaDataIssuer: issuer,
    oidcServiceAllowAuthorizationCodeFlow: 1,
    oidcServiceAllowOffline: 1,
    oidcServicePrivateKeySig: await readFile(at('key.pem'), 'utf8'),
    oidcServicePublicKeySig: await readFile(at('pub.pem'), 'utf8'),
    oidcServiceKeyIdSig: 'bench',
    oidcRPMetaDataOptions: {
      annals: {
        oidcRPMetaDataOptionsClientID: 'annals',
        oidcRPMetaDataOptionsClientSecret: clientSecret,
        oidcRPMetaDataOptionsRedirectUris: `${baseUrl}/console/oidc/callback`,
        oidcRPMetaDataOptionsPostLogoutRedirectUris: `${baseUrl}/console/`,
        oidcRPMetaDataOptionsIDTokenSignAlg: 'RS256',
        oidcRPMetaDataOptionsBypassConsent: 1,
        oidcRPMetaDataOptionsAllowOffline: 1,
        oidcRPMetaDataOptionsRefreshToken: 1,
        oidcRPMetaDataOptionsLogoutBypassConfirm: 1,
      },
    },
    oidcRPMetaDataExportedVars: { annals: { name: 'cn', email: 'mail', groups: 'groups' } },
    // The groups are behind a scope of their own, and the ID token has no claims: userinfo has them.
    oidcRPMetaDataOptionsExtraClaims: { annals: { groups: 'groups' } },
  };
  await writeFile(at('conf/lmConf-1.json'), JSON.stringify(configuration));
  const cache = `{ 'namespace' => 'config', 'default_expires_in' => 600, 'directory_umask' => '007', 'cache_root' => '${at('cache')}', 'cache_depth' => 3 }`;
  await writeFile(
    at('portal.ini'),
    `[all]
logLevel = warn
logger = Lemonldap::NG::Common::Logger::Std
userLogger = Lemonldap::NG::Common::Logger::Std
checkTime = 1
[configuration]
type = File
dirName = ${at('conf')}
localStorage = Cache::FileCache
localStorageOptions = ${cache}
[portal]
staticPrefix = /static
templateDir = /usr/share/lemonldap-ng/portal/templates
languages = en
`,
  );
  await writeFile(
    at('portal.psgi'),
    `use Plack::Builder;
use Lemonldap::NG::Portal;
my $portal = Lemonldap::NG::Portal->run({});
builder {
    enable 'Static', path => qr{^/(?:static|javascript)/}, root => '/usr/share/lemonldap-ng/portal/htdocs/';
    $portal;
};
`,
  );
  return { program: at('portal.psgi'), environment: { LLNG_DEFAULTCONFFILE: at('portal.ini') } };
}
