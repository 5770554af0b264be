//! SCRAM credentials from `--add-scram` arguments (B-54, field case C-21).
//!
//! Owns the grammar `MECHANISM=[key=value,...]` and the derivation of the keys that Kafka stores
//! (RFC 5802; `ScramFormatter`). Passwords live in buffers that are overwritten when dropped and
//! have no text form, and no error carries a piece of one: what stands behind a `password`
//! component may be its second half, so from there on components are named by number only.
//!
//! Differences from Kafka: blanks around keys are ignored, `\"` and `\\` are escapes inside double
//! quotes, a repeated key is refused, and messages never repeat text that may be secret.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256, Sha512};
use std::fmt;

/// Smallest iteration count that Kafka takes, for both mechanisms.
pub const ITERATIONS_MIN: u32 = 4096;
/// Largest iteration count that Kafka takes, for both mechanisms.
pub const ITERATIONS_MAX: u32 = 16384;

/// Salts that Kafka generates are this many characters of `0-9a-z` (a 130-bit number in base 36).
const SALT_CHARS: usize = 26;

/// Like Java's `Base64.getDecoder()`: padding may be missing.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Hash that a credential is for; the numbers are those of `UserScramCredentialRecord.Mechanism`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScramMechanism {
    /// `SCRAM-SHA-256`.
    Sha256,
    /// `SCRAM-SHA-512`.
    Sha512,
}

impl ScramMechanism {
    /// Number in records: 1 or 2.
    pub const fn code(self) -> i8 {
        match self {
            ScramMechanism::Sha256 => 1,
            ScramMechanism::Sha512 => 2,
        }
    }

    /// Name as users write it.
    pub const fn name(self) -> &'static str {
        match self {
            ScramMechanism::Sha256 => "SCRAM-SHA-256",
            ScramMechanism::Sha512 => "SCRAM-SHA-512",
        }
    }

    /// Name of Kafka's enum constant, which its messages show.
    const fn constant(self) -> &'static str {
        match self {
            ScramMechanism::Sha256 => "SCRAM_SHA_256",
            ScramMechanism::Sha512 => "SCRAM_SHA_512",
        }
    }

    fn from_name(name: &str) -> Option<ScramMechanism> {
        [ScramMechanism::Sha256, ScramMechanism::Sha512].into_iter().find(|m| m.name() == name)
    }

    fn salted_password(self, password: &[u8], salt: &[u8], iterations: u32) -> Secret {
        let mut out = match self {
            ScramMechanism::Sha256 => vec![0; 32],
            ScramMechanism::Sha512 => vec![0; 64],
        };
        match self {
            ScramMechanism::Sha256 => pbkdf2::pbkdf2_hmac::<Sha256>(password, salt, iterations, &mut out),
            ScramMechanism::Sha512 => pbkdf2::pbkdf2_hmac::<Sha512>(password, salt, iterations, &mut out),
        }
        Secret(out)
    }

    fn hmac(self, key: &[u8], text: &[u8]) -> Vec<u8> {
        match self {
            ScramMechanism::Sha256 => hmac_of::<Hmac<Sha256>>(key, text),
            ScramMechanism::Sha512 => hmac_of::<Hmac<Sha512>>(key, text),
        }
    }

    fn hash(self, text: &[u8]) -> Vec<u8> {
        match self {
            ScramMechanism::Sha256 => Sha256::digest(text).to_vec(),
            ScramMechanism::Sha512 => Sha512::digest(text).to_vec(),
        }
    }
}

fn hmac_of<M: Mac + hmac::digest::KeyInit>(key: &[u8], text: &[u8]) -> Vec<u8> {
    let Ok(mut mac) = <M as Mac>::new_from_slice(key) else {
        unreachable!("HMAC takes keys of any length");
    };
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

/// Bytes that are overwritten when dropped and never printed.
struct Secret(Vec<u8>);

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.fill(0);
        // Keeps the compiler from dropping the stores as dead.
        std::hint::black_box(&self.0);
    }
}

/// What a `UserScramCredentialRecord` holds. `Debug` leaves the keys out: who has them can
/// impersonate the server, and try passwords against them.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramCredential {
    /// User name.
    pub name: String,
    /// Hash.
    pub mechanism: ScramMechanism,
    /// Salt; text of the base-36 digits when generated, as Kafka does it.
    pub salt: Vec<u8>,
    /// `H(HMAC(SaltedPassword, "Client Key"))`.
    pub stored_key: Vec<u8>,
    /// `HMAC(SaltedPassword, "Server Key")`.
    pub server_key: Vec<u8>,
    /// Rounds of PBKDF2.
    pub iterations: u32,
}

impl fmt::Debug for ScramCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScramCredential")
            .field("name", &self.name)
            .field("mechanism", &self.mechanism)
            .field("iterations", &self.iterations)
            .finish_non_exhaustive()
    }
}

impl ScramCredential {
    /// True if `password` is the one this credential was made from.
    pub fn verify(&self, password: &str) -> bool {
        let salted = self.mechanism.salted_password(password.as_bytes(), &self.salt, self.iterations);
        let (stored, server) = keys(self.mechanism, &salted);
        stored == self.stored_key && server == self.server_key
    }
}

fn keys(mechanism: ScramMechanism, salted: &Secret) -> (Vec<u8>, Vec<u8>) {
    let client = Secret(mechanism.hmac(&salted.0, b"Client Key"));
    (mechanism.hash(&client.0), mechanism.hmac(&salted.0, b"Server Key"))
}

/// An `--add-scram` argument that is wrong. `Display` is Kafka's sentence, with anything that may be
/// part of a password left out; nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ScramError {
    /// Which argument, from 1.
    pub argument: usize,
    /// Which component between the brackets, from 1; `None` outside of them.
    pub component: Option<usize>,
    /// What is wrong.
    pub problem: ScramProblem,
}

/// What is wrong with a SCRAM argument.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ScramProblem {
    #[error("Failed to find equals sign in SCRAM argument")]
    NoMechanism,
    #[error("The add-scram mechanism {name} is not supported.")]
    UnknownMechanism { name: String },
    #[error("Expected configuration string to start with [")]
    NoOpeningBracket,
    #[error("Expected configuration string to end with ]")]
    NoClosingBracket,
    #[error("No equals sign found in SCRAM component")]
    NoEquals,
    #[error("No closing quote found in SCRAM component")]
    OpenQuote,
    #[error("Unexpected text behind the closing quote in SCRAM component")]
    BehindQuote,
    #[error("You must supply 'name' to add-scram")]
    NoName,
    #[error("You must supply one of 'password' or 'saltedpassword' to add-scram")]
    NoPassword,
    #[error("The 'password' value must not be empty for add-scram")]
    EmptyPassword,
    #[error("You must supply 'salt' with 'saltedpassword' to add-scram")]
    NoSalt,
    #[error("Failed to decode given salt: {salt}")]
    BadSalt { salt: String },
    #[error("Failed to decode given saltedpassword")]
    BadSaltedPassword,
    #[error("Failed to parse iterations count: {text}")]
    BadIterations { text: String },
    #[error("The 'iterations' value must be >= {ITERATIONS_MIN} for add-scram using {mechanism}")]
    TooFewIterations { mechanism: &'static str },
    #[error("The 'iterations' value must be <= {ITERATIONS_MAX} for add-scram using {mechanism}")]
    TooManyIterations { mechanism: &'static str },
    #[error("Unknown SCRAM configurations: {key}")]
    UnknownKey { key: String },
    #[error("Repeated SCRAM configuration: {key}")]
    Repeated { key: &'static str },
}

impl ScramError {
    /// Where in the arguments it stands, for a second line of a message.
    pub fn place(&self) -> String {
        match self.component {
            Some(component) => format!("component {component} of --add-scram argument {}", self.argument),
            None => format!("--add-scram argument {}", self.argument),
        }
    }
}

/// Reads all `--add-scram` arguments and derives their keys, in the order given. Duplicates of user
/// and mechanism are kept as given, as in Kafka. `random` makes the salts that are not given.
///
/// # Errors
/// The first argument that is wrong.
pub fn parse_scram_arguments<S: AsRef<str>>(
    arguments: &[S],
    random: &mut dyn FnMut() -> u64,
) -> Result<Vec<ScramCredential>, ScramError> {
    arguments.iter().enumerate().map(|(i, text)| parse_one(i + 1, text.as_ref(), random)).collect()
}

const KEYS: [&str; 5] = ["name", "password", "saltedpassword", "salt", "iterations"];

fn parse_one(
    argument: usize,
    text: &str,
    random: &mut dyn FnMut() -> u64,
) -> Result<ScramCredential, ScramError> {
    let outside = |problem| ScramError { argument, component: None, problem };
    let (mechanism, config) =
        text.trim().split_once('=').ok_or_else(|| outside(ScramProblem::NoMechanism))?;
    let mechanism = ScramMechanism::from_name(mechanism).ok_or_else(|| {
        // Whatever does not look like a mechanism may be a password in the wrong place.
        let plain = mechanism.starts_with("SCRAM-") && mechanism.len() <= 20;
        let name = if plain { mechanism.escape_default().to_string() } else { "given".to_owned() };
        outside(ScramProblem::UnknownMechanism { name })
    })?;
    let config = config.trim();
    let config = config.strip_prefix('[').ok_or_else(|| outside(ScramProblem::NoOpeningBracket))?;
    let config = config.strip_suffix(']').ok_or_else(|| outside(ScramProblem::NoClosingBracket))?;

    let mut values: [Option<Secret>; KEYS.len()] = Default::default();
    let mut secret_seen = false;
    for component in components(config) {
        let Component { number, key, value } =
            component.map_err(|(n, problem)| ScramError { argument, component: Some(n), problem })?;
        let inside = |problem| ScramError { argument, component: Some(number), problem };
        match KEYS.iter().zip(&mut values).find(|(known, _)| **known == key) {
            Some((known, Some(_))) => return Err(inside(ScramProblem::Repeated { key: known })),
            Some((_, slot)) => *slot = Some(value),
            None => {
                let key =
                    if secret_seen { "(not shown)".to_owned() } else { key.escape_default().to_string() };
                return Err(inside(ScramProblem::UnknownKey { key }));
            }
        }
        secret_seen |= key == "password" || key == "saltedpassword";
    }
    let [name, password, salted_password, salt, iterations] = values;
    let text_of = |value: &Secret| String::from_utf8_lossy(&value.0).into_owned();

    let name = name.map(|n| text_of(&n)).filter(|n| !n.is_empty());
    let name = name.ok_or_else(|| outside(ScramProblem::NoName))?;
    let salt = salt.map(|s| text_of(&s));
    if password.is_none() {
        if salted_password.is_none() {
            return Err(outside(ScramProblem::NoPassword));
        }
        if salt.is_none() {
            return Err(outside(ScramProblem::NoSalt));
        }
    }
    let iterations = match iterations {
        None => ITERATIONS_MIN,
        Some(count) => {
            let text = text_of(&count);
            let count: i32 = text.trim().parse().map_err(|_| {
                outside(ScramProblem::BadIterations { text: text.escape_default().to_string() })
            })?;
            if count < ITERATIONS_MIN.cast_signed() {
                return Err(outside(ScramProblem::TooFewIterations { mechanism: mechanism.constant() }));
            }
            if count > ITERATIONS_MAX.cast_signed() {
                return Err(outside(ScramProblem::TooManyIterations { mechanism: mechanism.constant() }));
            }
            count.cast_unsigned()
        }
    };
    let salt = match salt {
        Some(text) => BASE64
            .decode(&text)
            .map_err(|_| outside(ScramProblem::BadSalt { salt: text.escape_default().to_string() }))?,
        None => random_salt(random),
    };
    let salted = match (password, salted_password) {
        (Some(password), _) if password.0.is_empty() => {
            return Err(outside(ScramProblem::EmptyPassword));
        }
        (Some(password), _) => mechanism.salted_password(&password.0, &salt, iterations),
        (None, salted) => {
            let text = salted.unwrap_or(Secret(Vec::new()));
            match BASE64.decode(&text.0) {
                Ok(bytes) if !bytes.is_empty() => Secret(bytes),
                _ => return Err(outside(ScramProblem::BadSaltedPassword)),
            }
        }
    };
    let (stored_key, server_key) = keys(mechanism, &salted);
    Ok(ScramCredential { name, mechanism, salt, stored_key, server_key, iterations })
}

fn random_salt(random: &mut dyn FnMut() -> u64) -> Vec<u8> {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    (0..SALT_CHARS).map(|_| DIGITS[(random() % 36) as usize]).collect()
}

struct Component<'a> {
    /// Place between the brackets, from 1.
    number: usize,
    key: &'a str,
    value: Secret,
}

/// Walks `key=value` pairs separated by commas. A value in double quotes may contain anything, with
/// `\"` and `\\` for a quote and a backslash; any other ends at the comma.
fn components(config: &str) -> impl Iterator<Item = Result<Component<'_>, (usize, ScramProblem)>> {
    let mut rest = Some(config).filter(|text| !text.trim().is_empty());
    let mut number = 0;
    std::iter::from_fn(move || {
        let text = rest.take()?;
        number += 1;
        Some(component(text).map_err(|problem| (number, problem)).map(|(key, value, after)| {
            rest = after;
            Component { number, key, value }
        }))
    })
}

/// Key, value, and what stands behind the comma if there is one.
type Split<'a> = (&'a str, Secret, Option<&'a str>);

fn component(text: &str) -> Result<Split<'_>, ScramProblem> {
    let end = text.find(['=', ',']).filter(|&at| text[at..].starts_with('='));
    let equals = end.ok_or(ScramProblem::NoEquals)?;
    let key = text[..equals].trim();
    let value = &text[equals + 1..];
    let Some(quoted) = value.trim_start().strip_prefix('"') else {
        return Ok(match value.split_once(',') {
            Some((value, after)) => (key, Secret(value.as_bytes().to_vec()), Some(after)),
            None => (key, Secret(value.as_bytes().to_vec()), None),
        });
    };
    // The room is reserved once, so that no copy of half a password is left behind by growing.
    let mut secret = Secret(Vec::with_capacity(quoted.len()));
    let mut bytes = quoted.bytes().enumerate();
    let end = loop {
        match bytes.next() {
            None => return Err(ScramProblem::OpenQuote),
            Some((at, b'"')) => break at + 1,
            Some((at, b'\\')) if matches!(quoted.as_bytes().get(at + 1), Some(b'"' | b'\\')) => {
                secret.0.extend(bytes.next().map(|(_, byte)| byte));
            }
            Some((_, byte)) => secret.0.push(byte),
        }
    };
    let after = quoted[end..].trim_start();
    match after.strip_prefix(',') {
        Some(after) => Ok((key, secret, Some(after))),
        None if after.is_empty() => Ok((key, secret, None)),
        None => Err(ScramProblem::BehindQuote),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(argument: &str) -> Result<ScramCredential, ScramError> {
        let mut seed = 7u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 16
        };
        parse_scram_arguments(&[argument], &mut random).map(|mut all| all.remove(0))
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn keys_equal_those_that_kafka_stored() {
        // Kafka 4.4.0, fixture formatted-4.4.0/scram: the salt there is text of base-36 digits.
        let salt = BASE64.encode("9haboaputv9slvbpko966wzms");
        let alice =
            parse(&format!("SCRAM-SHA-256=[name=alice,iterations=4096,password=alice-secret,salt={salt}]"))
                .unwrap();
        assert_eq!(
            hex(&alice.stored_key),
            "2e7b5efe217fd472b15a540d04095f57ac4379e408fa435945175bf1dacbe5b4"
        );
        assert_eq!(
            hex(&alice.server_key),
            "534cba2e8bb3101c9daecd8f9aa99375fa1e9ef7dad990e6dd267501bf1ef51c"
        );
        let bob = parse(
            "SCRAM-SHA-512=[name=bob,salt=c2FsdHNhbHQ=,\
             saltedpassword=mT0yyUUxnlJaC99HXgRTSYlbuqa4FSGtJCJfTMvjYCE=,iterations=8192]",
        )
        .unwrap();
        assert_eq!((bob.salt.as_slice(), bob.iterations), (&b"saltsalt"[..], 8192));
        assert!(hex(&bob.stored_key).starts_with("39325a234c6b55502bc3630d337e5e18d56fa3b64e6df76607a8f6e5"));
        assert!(hex(&bob.server_key).starts_with("48016d6af2f37be24148c855995c503ae1f999191db2b138"));
    }

    #[test]
    fn passwords_with_separators_and_quotes_are_stored_as_given() {
        for (argument, name, password) in [
            (r#"SCRAM-SHA-256=[name=alice,password="a,b=c;d"]"#, "alice", "a,b=c;d"),
            ("SCRAM-SHA-512=[name=alice, password=p w, iterations=8192]", "alice", "p w"),
            (r#"SCRAM-SHA-256=[name="al ice",password="q\"q"]"#, "al ice", "q\"q"),
            (r#"SCRAM-SHA-256=[name=a,password="x\\y\z]"]"#, "a", r"x\y\z]"),
            ("SCRAM-SHA-256=[password=a=b,name=a]", "a", "a=b"),
        ] {
            let user = parse(argument).unwrap_or_else(|e| panic!("{argument}: {e}"));
            assert_eq!(user.name, name, "{argument}");
            assert!(user.verify(password), "{argument}");
            assert!(!user.verify("another"), "{argument}");
            assert_eq!(user.salt.len(), 26);
        }
        let pre =
            parse(r#"SCRAM-SHA-512=[name=alice,iterations=8192,salt="c2FsdA==",saltedpassword="cHc="]"#);
        assert_eq!(pre.map(|u| u.salt), Ok(b"salt".to_vec()));
    }

    #[test]
    fn wrong_arguments_say_what_kafka_says_and_never_the_password() {
        for (argument, text) in [
            ("SCRAM-SHA-256[s3cret]", "Failed to find equals sign in SCRAM argument"),
            (
                "SCRAM-SHA-1=[name=alice,password=s3cret]",
                "The add-scram mechanism SCRAM-SHA-1 is not supported.",
            ),
            ("s3cret=x", "The add-scram mechanism given is not supported."),
            ("SCRAM-SHA-256=name=alice,password=s3cret", "Expected configuration string to start with ["),
            ("SCRAM-SHA-256=[name=alice,password=s3cret", "Expected configuration string to end with ]"),
            ("SCRAM-SHA-256=[name=alice,password=a,s3cret]", "No equals sign found in SCRAM component"),
            ("SCRAM-SHA-256=[password=s3cret]", "You must supply 'name' to add-scram"),
            (
                "SCRAM-SHA-256=[name=alice]",
                "You must supply one of 'password' or 'saltedpassword' to add-scram",
            ),
            (
                "SCRAM-SHA-512=[name=alice,saltedpassword=\"s3cret\"]",
                "You must supply 'salt' with 'saltedpassword' to add-scram",
            ),
            ("SCRAM-SHA-256=[name=a,password=s3cret,salt=??]", "Failed to decode given salt: ??"),
            ("SCRAM-SHA-256=[name=a,password=s3cret,iterations=x]", "Failed to parse iterations count: x"),
            (
                "SCRAM-SHA-256=[name=a,password=s3cret,iterations=4095]",
                "The 'iterations' value must be >= 4096 for add-scram using SCRAM_SHA_256",
            ),
            (
                "SCRAM-SHA-512=[name=a,password=s3cret,iterations=16385]",
                "The 'iterations' value must be <= 16384 for add-scram using SCRAM_SHA_512",
            ),
            ("SCRAM-SHA-256=[foo=1,name=a,password=s3cret]", "Unknown SCRAM configurations: foo"),
            ("SCRAM-SHA-256=[name=a,password=a,s3cret=b]", "Unknown SCRAM configurations: (not shown)"),
            ("SCRAM-SHA-256=[name=a,password=\"s3cret]", "No closing quote found in SCRAM component"),
        ] {
            let error = parse(argument).err().unwrap_or_else(|| panic!("{argument} was taken"));
            assert_eq!(error.to_string(), text, "{argument}");
            assert!(!format!("{error:?} {}", error.place()).contains("s3cret"), "{argument}");
        }
    }
}
