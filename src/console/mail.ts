// What the console sends by mail, and through which server. Links begin with the address at which people reach Scrip,
// never with what a request says about it.

import { createTransport } from 'nodemailer';
import type { Letters } from './identity/people.ts';

export interface MailSettings {
  /** `smtp://user:password@host:port`, or `smtps://…` */
  readonly smtpUrl: string;
  readonly from: string;
}

const TIMEOUT_MS = 10_000;

/** @param publicUrl without a slash at its end */
export function lettersBy({ smtpUrl, from }: MailSettings, publicUrl: () => string): Letters {
  const transport = createTransport({
    url: smtpUrl,
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    // Nothing of a message is read from a file or an address.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const send = async (to: string, subject: string, text: string) => {
    await transport.sendMail({ from, to: { name: '', address: to }, subject, text, textEncoding: 'quoted-printable' });
  };
  return {
    confirm: (email, secret) =>
      send(
        email,
        'Confirm your address',
        `Somebody, hopefully you, signed up for Scrip with this address. To confirm it, open this link within a day,\nand enter the password that you chose:\n\n${publicUrl()}/console/verify/${secret}\n\nIf it was not you, do nothing.\n`,
      ),
    isThereAlready: (email) =>
      send(
        email,
        'You have signed up already',
        `Somebody, hopefully you, tried to sign up for Scrip with this address, which belongs to an account already.\nNothing was changed. To sign in, or to set a new password:\n\n${publicUrl()}/console/sign-in\n`,
      ),
    resetPassword: (email, secret) =>
      send(
        email,
        'Set a new password',
        `Somebody, hopefully you, asked for a new password at Scrip. To set one, open this link within an hour:\n\n${publicUrl()}/console/reset-password/${secret}\n\nIf it was not you, do nothing: the password stays as it is.\n`,
      ),
  };
}
