const secretWords = new RegExp(
  `(?:^|_)(?:${[
    'secret',
    'token',
    'passw(?:or)?d|pwd|passphrase|passcode|salt',
    'credential',
    '(?:api|access|private|secret|encrypted|encryption|signing|auth|licen[cs]e|webhook|master)_?key',
    'session(?:_?(?:id|key))?|sid|jwt|cookie',
    '(?:recovery|backup|verification|reset|activation|invitation|security|login|two_factor)_code',
    't?otp|pin|cvv|cvc',
    'iban|ssn|social_security(?:_(?:no|number))?|(?:account|routing|passport)_(?:no|number)|national_id|card_(?:no|num|number)',
  ].join('|')})s?(?:_(?:hash|digest|value|encrypted))?$`,
);

/** Whether a column's name suggests secrets: passwords, tokens, keys, card and account numbers. */
export function soundsSecret(column: string): boolean {
  return secretWords.test(snakeCase(column));
}

/** `passwordHash`, `API-Key` and `pin no.` as `password_hash`, `api_key` and `pin_no_`. */
export function snakeCase(name: string): string {
  return name
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1_$2')
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1_$2')
    .replace(/[^\p{L}\p{M}\p{N}]+/gu, '_')
    .toLowerCase();
}
