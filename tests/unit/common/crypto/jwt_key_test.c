#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/crypto/jwt.h"
#include "test_keys.h"

/* 1024 bits. */
static const char KEY_SMALL[] = "-----BEGIN RSA PRIVATE KEY-----\n"
                                "MIICXAIBAAKBgQCulzSsqCJR4ZnQUg27xUsz1EXK6MQTS3jEi+Y/W+cb81tcAPrp\n"
                                "XPOwN89uZASZAsH2zPhHqGniBqzrRMRmX2lWkG6m2M7yHEDaWTn2dgr7+Tm+Dx1x\n"
                                "nxsL9z9f6HAeby3R7pwVRp/aIJnYfeJvMwIBzmMF1YGd56pPqWDQJK8OAQIDAQAB\n"
                                "AoGBAI0nnuTBAw5kcbFlxci8WHLM+qh0zKI08K0n1r3/FbkZZhHakQI/rp4YYVME\n"
                                "9lqnSh651TpKRWECuKd2b7u9BDIsQI2vYt6jiuVhxUUzNf2vYKN63qjuwZU1zSkV\n"
                                "ogZc2nY2oFJ2HodBBhsVfeDHxSHoMJZqre5wGmA8hUJdwzzhAkEA3puUH9GnQ5CM\n"
                                "TgMkMG3o5khmso1TPrAZAjYqnOWVQ1I8JecCLR/FtfBSJhw1NxFT/ZUXq7hbxIyu\n"
                                "Bb1VvKwvzQJBAMjHtbea3ZrjB+DH9DI23YjlhPQij7JWbNazxiD/5GKYIffyYXHL\n"
                                "ni7ma4e6Dz8n6fERCVRKraCfpPzoPDrlmwUCQD1cY0M2FkYghRxH72TOFyHLGUvk\n"
                                "eurPvcUHS02+VxucgmnsOIRZurUBDpPkuKJ6S02eGE1EXz9Zi+qXGxgL2o0CQCRe\n"
                                "QGUskR2AKCooLex2kbQ9VtLd+8di7j4JvEa380eEpQqDhfEV3+ZA6JNiOWbINRDs\n"
                                "dBMnn8GriTgiXN6SPn0CQDQ2Ojp0NlILBG+Fnp/biPa4tuuGClMSh5toQrEtczv7\n"
                                "48304ZimntJsck69ppuHWTRkpK6CmhfpoBom/cdwT30=\n"
                                "-----END RSA PRIVATE KEY-----\n";

static const char KEY_EC[] = "-----BEGIN EC PRIVATE KEY-----\n"
                             "MHcCAQEEIFJTwlUKBlQLAQmRRx1zuPIk8Igu6dJJ7+m+zN7L0dpkoAoGCCqGSM49\n"
                             "AwEHoUQDQgAEAlIqMXe4Bmft/QrsE7vfQ3dDutjDujEuNRa2buv9GFcroF7NgsJ5\n"
                             "xBGU4pExdW0OMIRK47YD6pYBup9IIN7X5A==\n"
                             "-----END EC PRIVATE KEY-----\n";

static const char KEY_ENCRYPTED[] =
    "-----BEGIN RSA PRIVATE KEY-----\n"
    "Proc-Type: 4,ENCRYPTED\n"
    "DEK-Info: AES-128-CBC,572D016AAB7872403192AD5AF41FF86E\n"
    "\n"
    "+5gFub6dOBS2+elouO86ZuRouqkw62chWfq0ZnkSgMcESzMDaQ2tT8o5FhcVla1k\n"
    "5PGasqDtsWRZ4e1QPwyxeVy04hO9PHYZDqVCNPXySim59zXxXE5HQTeoPoqFp0lQ\n"
    "5w9974z2c5g8/mSkOdadH2D7Z6RcHQhSdHwdYsLGRVk8IBqdkqgL+IZSMR3/yiOt\n"
    "slSsvMqeZSneys1qVqzNVMc8ZznB/pYNZ+Kbj3VfnSaA717+q6xaKLcu9TysgFmo\n"
    "g+dP79KEfWUJhNhoA27HFMSfp0W3soNp2A0hDvSGjRFoxe9XZZoKtMXQU06Ho06D\n"
    "qTvhSMr30wmM53DAp/aQB7QHvmcnGWkcoC5Br2+M6yvze9GMq6yMvxESkw150Ec8\n"
    "F+89PK2OBHMzl+HqLq1KPsBQK09NiDsDEMUFst0zgKaTHF57Sd5byaSygbaDGjqF\n"
    "f1ZJCP5vf89myDi29cy2iNmIkfSIswIqLKBVe7cFdV/gdA7EnD6QL2+iWZuact6G\n"
    "O9DYj1hci2+kpG/Gk0FdBo+koeePBS9GDh6pdcgXO702FO09dDeAuN4mM9mqrEPx\n"
    "zTYFYXlZTP9UqkTOawbRPstZPY3GJ6aux+4xszwZV/4lG0uF9IrprFXkOHffd4bH\n"
    "RRh3B7afJ/k/45aqiH/haSXEwB7k39fawEXmJNegMpQQBXMJN7Ta1p/wqkMVK1N+\n"
    "90bUR9FkeoqBgCdffIPLDR6T8YkafGtGB01IWrCMwWeiyWEnj0EEoc+9D/G/14wi\n"
    "p7WUaqChwwJeZs6+aq9/zG5bgyNVbggYeSQxgsB/JG3HKfyKr5hBYrq5vphKZFCe\n"
    "7sQNlh1fccJYa+htwKiSMNGYmE3mdk12BO/r8dpiwaunj+Sj0rzP3rRIenWbomyO\n"
    "JwQfwxMJg0jNEpQbVYLuwoqBFpLqi2DpeTx3+FEI4wZ1F1+F5lM3VaBz31w51x+u\n"
    "2zv/rsQ7OUNELmkUby9fON49PJNWS2qxVNSX62lycoPQ6W5VQsuPP9piZWTb63gK\n"
    "2LoUNAPX4hxdKPfM9lbzY/mE5tNRv+PLICgsZth47nb/ovqSeziiwKLYJIHQisST\n"
    "0csxy5nXOJfs+D62f/atQqv7hg8GfFT8IQlbF9XGNPrvfRAllATY/5P+R/YOEz4h\n"
    "qiKgbziTvWq/Q626mR7IUIxO3KJXlSyOiw//XU8tza18y7q1HumnfiHO6Z9wYfav\n"
    "kcZe5A2saC804FlVclbsB18qIkwADI5UDsDvhFYoKLppde+oc1BnO6Vkn5mUGj3+\n"
    "Atmx2dLJ0lUQA9HvPbI0GGpvF+9XKq7bLKCDLDVPkhCBYvYsbO/f/dSEKtHWsGyz\n"
    "JpNjZyvh96IW6uq8wjoVSjL4m5wR7ysflFvy2FSfTi5zVYUy6+m6BPw3mQpRnuNG\n"
    "r+MqVEuf9xhNU9DXaA/HXzixWSmRt6xGFtuPjgk87/ES9C8H593p6e8puwWyJGgl\n"
    "nzfrU5dyAm5fo2FJykkvP01/TlC4WVZMozaCda8Ld6+7uA07SmsLzb/yv8qT26K7\n"
    "cEc46QydS4YE8xWI2uFwzVO8GbQw7AShprmQvOMyeYlrvlufQChtzO0joJKz5pKL\n"
    "-----END RSA PRIVATE KEY-----\n";

static char *jwks_of(const char *pem)
{
    struct jwt_key *key;
    struct why why;
    char *text;
    assert_int_equal(jwt_key_new(&key, str_of(pem), &why), OK);
    assert_int_equal(jwt_key_jwks(key, STR_LIT("k1"), &text, &why), OK);
    jwt_key_free(key);
    return text;
}

static void pkcs1_and_pkcs8_give_the_same_key(void **state)
{
    (void)state;
    char *one = jwks_of(KEY_A_PKCS1), *eight = jwks_of(KEY_A_PKCS8), *other = jwks_of(KEY_B);
    assert_string_equal(one, eight);
    assert_string_not_equal(one, other);
    free(one);
    free(eight);
    free(other);
}

static void newlines_may_be_written_as_two_characters(void **state)
{
    (void)state;
    char escaped[sizeof(KEY_B) * 2];
    size_t n = 0;
    for (const char *p = KEY_B; *p; p++) {
        if (*p == '\n')
            escaped[n++] = '\\';
        escaped[n++] = *p == '\n' ? 'n' : *p;
    }
    escaped[n] = '\0';
    char *a = jwks_of(KEY_B), *b = jwks_of(escaped);
    assert_string_equal(a, b);
    free(a);
    free(b);
}

static void the_public_document_has_no_private_number(void **state)
{
    (void)state;
    char *text = jwks_of(KEY_A_PKCS8);
    assert_non_null(strstr(text, "\"kid\":\"k1\""));
    assert_non_null(strstr(text, "\"alg\":\"RS256\""));
    assert_non_null(strstr(text, "\"n\":"));
    assert_null(strstr(text, "\"d\":"));
    assert_null(strstr(text, "\"p\":"));
    free(text);
}

static void refused(const char *pem, const char *reason)
{
    struct jwt_key *key = NULL;
    struct why why;
    assert_int_equal(jwt_key_new(&key, str_of(pem), &why), ERR_REFUSE);
    assert_null(key);
    assert_non_null(strstr(why.text, reason));
}

static void other_keys_are_refused_with_the_reason(void **state)
{
    (void)state;
    refused(KEY_SMALL, "1024 bits");
    refused(KEY_EC, "not an RSA key");
    refused(KEY_ENCRYPTED, "unencrypted PEM");
    refused("", "unencrypted PEM");
    refused("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "unencrypted PEM");
    refused(NULL, "unencrypted PEM");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pkcs1_and_pkcs8_give_the_same_key),
        cmocka_unit_test(newlines_may_be_written_as_two_characters),
        cmocka_unit_test(the_public_document_has_no_private_number),
        cmocka_unit_test(other_keys_are_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
